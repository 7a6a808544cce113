"""model/fit/optimiser.py: each parameter has the right rate and decay, and the steps are the paper's."""

import pytest
import torch
from torch import nn

from model.config import variant
from model.fit.optimiser import decays, layer_of, optimiser, parameter_groups
from model.vit import VisionTransformer


@pytest.fixture
def network():
    return VisionTransformer(variant("mu/8", image_size=(16, 24), num_classes=3, registers=1, norm_pre=True))


def test_every_parameter_is_in_one_group(network):
    groups = parameter_groups(network, rate=0.1, weight_decay=0.3, layer_decay=0.5)
    grouped = [parameter for group in groups for parameter in group["params"]]
    assert sorted(map(id, grouped)) == sorted(map(id, network.parameters()))


def test_rates_fall_from_the_head_to_the_embedding_and_matrices_alone_decay(network):
    groups = parameter_groups(network, rate=0.1, weight_decay=0.3, layer_decay=0.5)
    of = {id(p): (group["lr"], group["weight_decay"]) for group in groups for p in group["params"]}
    found = {name: of[id(parameter)] for name, parameter in network.named_parameters()}
    expected = {
        "head.weight": (0.1, 0.3), "head.bias": (0.1, 0), "norm.weight": (0.1, 0),
        "blocks.1.attn.qkv.weight": (0.05, 0.3), "blocks.1.norm1.weight": (0.05, 0),
        "blocks.0.mlp.fc1.weight": (0.025, 0.3), "blocks.0.mlp.fc1.bias": (0.025, 0),
        "patch_embed.proj.weight": (0.0125, 0.3), "patch_embed.proj.bias": (0.0125, 0), "pos_embed": (0.0125, 0),
        "cls_token": (0.0125, 0), "reg_token": (0.0125, 0), "norm_pre.weight": (0.0125, 0),
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected


def test_relative_biases_and_attention_pools_have_their_layers():
    config = variant("mu/8", image_size=(16, 24), num_classes=3, relative_bias=True, positions="none", pool="map")
    names = dict(VisionTransformer(config).named_parameters())
    table = "blocks.1.attn.relative_position_bias_table"
    assert (layer_of(table, 2), decays(table, names[table])) == (2, False)
    assert (layer_of("attn_pool.latent", 2), decays("attn_pool.latent", names["attn_pool.latent"])) == (3, False)


def test_sgd_has_momentum(network):
    start = network.head.bias.detach().clone()
    sgd = optimiser("sgd", network, rate=0.1)
    for _ in range(2):
        network.head.bias.grad = torch.ones(3)
        sgd.step()
    torch.testing.assert_close(network.head.bias.detach(), start - 0.1 * (1 + 1.9))


def test_adam_decays_apart_from_the_gradient_and_modules_beside_the_network_learn(network):
    beside = nn.Linear(2, 2)
    start = {"of the network": network.head.weight.detach().clone(), "beside": beside.weight.detach().clone()}
    adam = optimiser("adamw", network, rate=0.1, weight_decay=0.3, beside=[beside])
    network.head.weight.grad, beside.weight.grad = torch.ones(3, 32), torch.ones(2, 2)
    adam.step()
    for name, weight in (("of the network", network.head.weight), ("beside", beside.weight)):
        torch.testing.assert_close(weight.detach(), start[name] * (1 - 0.03) - 0.1)
