"""model/blocks.py and what stands in a block: attention, MLP, norms."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from model.attention import relative_position_index
from model.variants import variant
from tests.support.toy import toy_model

TOKENS = torch.randn(2, 7, 32, generator=torch.Generator().manual_seed(2))


def block(**changes):
    return toy_model(variant("mu/16", image_size=(32, 48), num_classes=5, **changes)).blocks[0]


@torch.no_grad()
def test_pre_norm():
    b = block(layer_scale=True)
    x = TOKENS + b.ls1.gamma * b.attn(b.norm1(TOKENS))
    torch.testing.assert_close(b(TOKENS), x + b.ls2.gamma * b.mlp(b.norm2(x)))


@torch.no_grad()
def test_res_post_norms_its_branches():
    b = block(block="res_post")
    x = TOKENS + b.norm1(b.attn(TOKENS))
    torch.testing.assert_close(b(TOKENS), x + b.norm2(b.mlp(x)))


@torch.no_grad()
def test_parallel_adds_both_branches_of_one_norm():
    b = block(block="parallel", layer_scale=True)
    normed = b.norm1(TOKENS)
    torch.testing.assert_close(b(TOKENS), TOKENS + b.ls1.gamma * (b.attn(normed) + b.mlp(normed)))


@torch.no_grad()
@pytest.mark.parametrize("kind", ["pre_norm", "res_post", "parallel"])
def test_a_block_shows_the_attention_of_the_tokens_that_it_gets(kind):
    b = block(block=kind)
    seen = b.attn.weights(TOKENS if kind == "res_post" else b.norm1(TOKENS))
    torch.testing.assert_close(b.attention(TOKENS), seen)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["pre_norm", "res_post", "parallel"])
def test_a_block_adds_its_branches(kind):
    b = block(block=kind, layer_scale=kind != "res_post")
    attended, transformed = b.branches(TOKENS)
    torch.testing.assert_close(b(TOKENS), TOKENS + attended + transformed, rtol=0, atol=0)


@torch.no_grad()
def test_normed_queries_and_keys_have_no_scale():
    a = block(qk_norm=True, qkv_bias=False).attn
    before = a.weights(TOKENS)
    a.qkv.weight[:64] *= 3
    torch.testing.assert_close(a.weights(TOKENS), before, rtol=1e-3, atol=1e-4)


@torch.no_grad()
def test_inner_norms_take_the_scale_of_the_values():
    a = block(inner_norm=True, qkv_bias=False).attn
    before = a(TOKENS)
    a.qkv.weight[64:] *= 3
    torch.testing.assert_close(a(TOKENS), before, rtol=1e-3, atol=1e-3)


@torch.no_grad()
def test_rms_norm_keeps_the_mean():
    norm = block(norm="rms").norm1
    expected = TOKENS / (TOKENS.square().mean(-1, keepdim=True) + 1e-6).sqrt() * norm.weight
    torch.testing.assert_close(norm(TOKENS), expected)


def test_heads_may_be_wider_than_the_tokens():
    a = block(attn_dim=96).attn
    assert a.qkv.weight.shape == (3 * 96, 32)
    assert a.proj.weight.shape == (32, 96)
    assert a(TOKENS).shape == TOKENS.shape


def test_a_lone_head_can_do_without_projection():
    names = {name for name, _ in block(heads=1, attn_proj=False, qkv_bias=False).attn.named_parameters()}
    assert names == {"qkv.weight"}


@torch.no_grad()
@pytest.mark.parametrize("class_token", [True, False])
def test_the_relative_bias_is_that_of_the_offset(class_token):
    b = block(relative_bias=True, class_token=class_token, pool="mean")
    table, bias = b.attn.relative_position_bias_table, b.attn.bias()[0]
    assert len(table) == 3 * 5 + 3 * class_token
    places = list(itertools.product(range(2), range(3)))
    for (i, query), (j, key) in itertools.product(enumerate(places, class_token), repeat=2):
        row = (query[0] - key[0] + 1) * 5 + query[1] - key[1] + 2
        torch.testing.assert_close(bias[:, i, j], table[row])


def test_the_class_token_has_the_last_three_rows_of_the_table():
    index = relative_position_index((2, 3), class_token=True)
    assert index[0, 1:].unique().tolist() == [15]  # it asks a patch
    assert index[1:, 0].unique().tolist() == [16]  # a patch asks it
    assert index[0, 0] == 17


@torch.no_grad()
def test_the_relative_bias_is_added_before_the_softmax():
    a = block(relative_bias=True).attn
    with_bias = a.weights(TOKENS)
    expected = a.bias().exp()
    a.relative_position_bias_table.zero_()
    expected = expected * a.weights(TOKENS)
    torch.testing.assert_close(with_bias, expected / expected.sum(-1, keepdim=True))


@torch.no_grad()
def test_a_gated_mlp_activates_its_first_half():
    mlp = block(gated_mlp=True, activation="silu").mlp
    hidden = mlp.fc1(TOKENS)
    assert hidden.shape[-1] == 256
    expected = mlp.fc2(hidden[..., :128] * torch.sigmoid(hidden[..., :128]) * hidden[..., 128:])
    torch.testing.assert_close(mlp(TOKENS), expected)


@torch.no_grad()
@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("gelu", lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5))),
        ("gelu_tanh", lambda x: 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))),
        ("quick_gelu", lambda x: x * torch.sigmoid(1.702 * x)),
        ("silu", lambda x: x * torch.sigmoid(x)),
    ],
)
def test_activations(name, formula):
    mlp = block(activation=name).mlp
    torch.testing.assert_close(mlp(TOKENS), mlp.fc2(formula(mlp.fc1(TOKENS))))


@torch.no_grad()
def test_the_inner_norm_of_an_mlp_stands_after_the_activation():
    mlp = block(inner_norm=True).mlp
    hidden = F.gelu(mlp.fc1(TOKENS))
    hidden = F.layer_norm(hidden, (128,), mlp.norm.weight, mlp.norm.bias, eps=1e-6)
    torch.testing.assert_close(mlp(TOKENS), mlp.fc2(hidden))
