"""model/fit/optimiser.py: every parameter learns, matrices alone decay, the steps are Adam's, and the rate of each."""

import pytest
import torch
from torch import nn

from model.fit.optimiser import cosine, linear, optimiser
from model.variants import variant
from model.vit import VisionTransformer


@pytest.fixture
def network():
    return VisionTransformer(variant("mu/8", image_size=(16, 24), num_classes=3, registers=1, norm_pre=True))


def test_every_parameter_learns_and_matrices_alone_decay(network):
    groups = optimiser(network, rate=0.1, weight_decay=0.3).param_groups
    decay = {id(parameter): group["weight_decay"] for group in groups for parameter in group["params"]}
    shares = {name: decay[id(parameter)] for name, parameter in network.named_parameters()}
    assert len(shares) == sum(len(group["params"]) for group in groups)
    assert {name for name, share in shares.items() if share} == {
        *("head.weight", "patch_embed.proj.weight"),
        *(f"blocks.{n}.{layer}.weight" for n in (0, 1) for layer in ("attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2")),
    }


def test_adam_decays_apart_from_the_gradient_and_modules_beside_the_network_learn(network):
    beside = nn.Linear(2, 2)
    start = {"of the network": network.head.weight.detach().clone(), "beside": beside.weight.detach().clone()}
    adam = optimiser(network, rate=0.1, weight_decay=0.3, beside=[beside])
    network.head.weight.grad, beside.weight.grad = torch.ones(3, 32), torch.ones(2, 2)
    adam.step()
    for name, weight in (("of the network", network.head.weight), ("beside", beside.weight)):
        torch.testing.assert_close(weight.detach(), start[name] * (1 - 0.03) - 0.1)


def test_cosine_rises_to_1_and_falls_to_almost_0():
    factors = [cosine(step, 100, warm_up=10) for step in range(100)]
    assert [factors[step] for step in (0, 4, 9, 10, 55)] == pytest.approx([0.1, 0.5, 1, 1, 0.5])
    assert factors[10:] == sorted(factors[10:], reverse=True)
    assert 0 < factors[99] < 0.001
    assert cosine(0, 1, warm_up=1) == 1  # a run that is all warm-up


def test_linear_falls_from_the_first_step():
    assert [linear(step, 100, warm_up=10) for step in (0, 9, 50, 99)] == pytest.approx([0.1, 0.91, 0.5, 0.01])
    assert linear(0, 4, warm_up=0) == 1
