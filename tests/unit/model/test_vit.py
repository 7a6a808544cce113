"""model/vit.py: the paper's equations, and every switch of the network as a whole."""

import math

import pytest
import torch
import torch.nn.functional as F

from model.config import RopeConfig
from model.variants import variant
from tests.support.toy import toy_model

SIZE = (32, 48)  # two rows and three columns of patches
FAMILIES = {
    "plain": {},
    "google pre_logits": {"representation_size": 24, "activation": "gelu_tanh"},
    "hybrid": {"stem_layers": (1, 1, 1)},
    "deit distilled": {"distillation_token": True, "distillation_head": True},
    "deit hugging face": {"distillation_token": True, "norm_eps": 1e-12},
    "dinov2 giant": {"registers": 4, "layer_scale": True, "gated_mlp": True, "activation": "silu", "pool": "cls_mean"},
    "dino last blocks": {"head_layers": 2},
    "dinov2 last blocks": {"head_layers": 2, "pool": "cls_mean"},
    "beit": {"positions": "none", "relative_bias": True, "pool": "mean", "final_norm": "after_pool"},
    "beit3": {"inner_norm": True, "pool": "mean"},
    "ijepa": {"class_token": False, "pool": "mean_all"},
    "siglip": {"class_token": False, "pool": "map"},
    "clip": {"norm_pre": True, "patch_bias": False, "activation": "quick_gelu", "head_bias": False},
    "clip projection": {"norm_pre": True, "representation_size": 24, "representation": "linear", "num_classes": 0},
    "siglip beside texts": {"class_token": False, "pool": "map", "head": "cosine"},
    "simple vit": {"class_token": False, "pool": "mean", "positions": "sincos2d", "patch_norm": "dual", "attn_dim": 48},
    "vit-pytorch one head": {"heads": 1, "attn_proj": False, "qkv_bias": False},
    "paper 2-d": {"positions": "learned_2d"},
    "aimv2": {"norm": "rms", "patch_norm": "after", "class_token": False, "pool": "mean"},
    "eva02": {"rope": RopeConfig(reference=(4, 4)), "gated_mlp": True, "activation": "silu", "mlp_norm": True},
    "dinov3": {"rope": RopeConfig(kind="centered", pairs="halves"), "positions": "none", "registers": 2},
    "rope-vit mixed": {"rope": RopeConfig(kind="learned"), "positions": "none"},
    "perception encoder": {"rope": RopeConfig(axes="xy"), "pool": "map_all", "pool_heads": 4, "pool_mlp_dim": 40},
    "timm res_post": {"block": "res_post", "class_token": False, "pool": "mean", "final_norm": "none"},
    "timm parallel": {"block": "parallel", "qk_norm": True, "norm": "rms"},
}


def images(count=3, *, size=SIZE):
    return torch.randn(count, 3, *size, generator=torch.Generator().manual_seed(1))


def network(**changes):
    return toy_model(variant("mu/16", **{"image_size": SIZE, "num_classes": 5} | changes))


@pytest.fixture(params=FAMILIES.values(), ids=FAMILIES.keys())
def family(request):
    return network(**request.param)


@torch.no_grad()
def test_the_embedding_is_the_input_of_the_head(family):
    read = []
    heads = [head for head in (family.head_norm, family.head_dist) if head is not None]
    for head in heads:
        head.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
    family(images())
    embedding = family.embedding(family.encode(images()))
    assert embedding.shape == (3, family.config.embedding)
    torch.testing.assert_close(embedding, torch.stack(read).mean(0))


@torch.no_grad()
def test_the_default_network_is_the_papers_equations_1_to_4():
    model = network()
    w = model.state_dict()

    def norm(x, name):
        x = x - x.mean(-1, keepdim=True)
        return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    picture = images(1)[0]
    patches = torch.stack(
        [picture[:, 16 * r : 16 * r + 16, 16 * c : 16 * c + 16].flatten() for r in range(2) for c in range(3)]
    )
    embedded = patches @ w["patch_embed.proj.weight"].flatten(1).T + w["patch_embed.proj.bias"]
    z = torch.cat([w["cls_token"][0], embedded + w["pos_embed"][0]])  # (T, D)
    for block in ("blocks.0", "blocks.1"):
        q, k, v = linear(norm(z, f"{block}.norm1"), f"{block}.attn.qkv").split(32, dim=-1)
        heads = []
        for h in (slice(0, 16), slice(16, 32)):
            heads.append((q[:, h] @ k[:, h].T / math.sqrt(16)).softmax(-1) @ v[:, h])
        z = z + linear(torch.cat(heads, dim=-1), f"{block}.attn.proj")
        hidden = linear(norm(z, f"{block}.norm2"), f"{block}.mlp.fc1")
        z = z + linear(hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2))), f"{block}.mlp.fc2")
    torch.testing.assert_close(model(picture[None])[0], linear(norm(z, "norm")[0], "head"), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_every_family_gives_finite_logits_that_depend_on_the_image(family):
    logits = family(images())
    assert logits.shape == (3, family.config.num_classes or family.config.embedding)
    assert logits.isfinite().all()
    assert (logits[0] - logits[1]).abs().max() > 1e-3


@torch.no_grad()
def test_every_family_shows_each_layers_attention(family):
    config = family.config
    matrices = family.attentions(images())
    tokens = len(config.prefix) + 6
    assert matrices.shape == (3, config.depth, config.heads, tokens, tokens)
    torch.testing.assert_close(matrices.sum(-1), torch.ones(matrices.shape[:-1]))


@torch.no_grad()
def test_the_shown_attention_is_the_attention_that_mixes_the_values(family):
    for block in family.blocks:
        tokens = torch.randn(2, len(family.config.prefix) + 6, 32)
        values = block.attn.qkv(tokens).chunk(3, dim=-1)[2].unflatten(-1, (family.config.heads, -1)).transpose(1, 2)
        mixed = (block.attn.weights(tokens) @ values).transpose(1, 2).flatten(2)
        torch.testing.assert_close(block.attn(tokens), block.attn.proj(block.attn.norm(mixed)), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_every_parameter_takes_part(family):
    """A parameter that can be shifted without a change of the logits is a dead one."""
    before = family(images())
    for name, parameter in family.named_parameters():
        kept = parameter.clone()
        parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(7)))
        assert (family(images()) - before).abs().max() > 1e-5, name
        parameter.copy_(kept)


@torch.no_grad()
def test_without_positions_the_order_of_patches_does_not_matter():
    def swapped(model):
        left, middle, right = images().chunk(3, dim=3)
        return model(torch.cat([right, left, middle], dim=3))

    blind, sighted = network(positions="none"), network()
    torch.testing.assert_close(swapped(blind), blind(images()), rtol=1e-4, atol=1e-4)
    assert (swapped(sighted) - sighted(images())).abs().max() > 0.1


def test_learned_2d_positions_join_a_table_of_columns_and_one_of_rows():
    model = network(positions="learned_2d")
    table = model.positions().reshape(2, 3, 32)
    for row in range(2):
        for column in range(3):
            expected = torch.cat([model.pos_embed_x[0, column], model.pos_embed_y[0, row]])
            torch.testing.assert_close(table[row, column], expected)


def test_sincos_positions_are_big_visions_and_in_no_checkpoint():
    model = network(class_token=False, pool="mean", positions="sincos2d")
    row, column, i = 1, 2, 5
    angle = 10_000 ** -(i / 7)
    found = model.positions()[0, 3 * row + column].unflatten(0, (4, 8))[:, i]
    expected = [f(at * angle) for at in (column, row) for f in (math.sin, math.cos)]
    torch.testing.assert_close(found, torch.tensor(expected))
    assert "pos_embed" not in model.state_dict()


@torch.no_grad()
def test_registers_stand_between_the_class_token_and_the_patches():
    model = network(registers=2, distillation_token=True)
    tokens = model.embed(images())
    torch.testing.assert_close(tokens[0, :4], torch.cat([model.cls_token, model.dist_token, model.reg_token], 1)[0])
    torch.testing.assert_close(tokens[:, 4:], model.patch_embed(images()) + model.pos_embed)


@torch.no_grad()
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"pool": "cls"}, lambda t: t[:, 0]),
        ({"pool": "mean"}, lambda t: t[:, 3:].mean(1)),
        ({"pool": "mean_all"}, lambda t: t.mean(1)),
        ({"pool": "cls_mean"}, lambda t: torch.cat([t[:, 0], t[:, 3:].mean(1)], 1)),
        ({"pool": "cls", "head_layers": 2}, lambda t: t[:, 0]),
        ({"pool": "cls_mean", "head_layers": 2}, lambda t: torch.cat([t[:, 0], t[:, 3:, 32:].mean(1)], 1)),
    ],
)
def test_pools(changes, expected):
    model = network(registers=2, **changes)
    tokens = model.encode(images())
    torch.testing.assert_close(model.classify(tokens), model.head(expected(tokens)))


@torch.no_grad()
def test_several_head_layers_are_the_normed_outputs_of_the_last_blocks_in_order():
    model = network(head_layers=2)
    first = model.blocks[0](model.embed(images()))
    second = model.blocks[1](first)
    torch.testing.assert_close(model.encode(images()), torch.cat([model.norm(first), model.norm(second)], dim=-1))


@torch.no_grad()
def test_attention_pooling_asks_the_patches_with_a_learned_query():
    model = network(pool="map", registers=1)
    pool, patches = model.attn_pool, model.encode(images())[:, 2:]
    keys, values = pool.kv(patches).chunk(2, dim=-1)
    query = pool.q(pool.latent[0, 0])
    heads = []
    for h in (slice(0, 16), slice(16, 32)):
        weights = (keys[..., h] @ query[h] / 4).softmax(-1)  # (B, N)
        torch.testing.assert_close(pool.weights(patches)[:, h.start // 16, 0], weights)
        heads.append((weights.unsqueeze(-1) * values[..., h]).sum(1))
    pooled = pool.proj(torch.cat(heads, dim=-1))
    pooled = pooled + pool.mlp.fc2(F.gelu(pool.mlp.fc1(pool.norm(pooled))))
    torch.testing.assert_close(model(images()), model.head(pooled), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_attention_pooling_of_all_tokens_has_sizes_of_its_own():
    model = network(pool="map_all", pool_heads=4, pool_mlp_dim=40, registers=1)
    tokens = model.encode(images())
    weights = model.attn_pool.weights(tokens)
    assert weights.shape == (3, 4, 1, 8)
    assert model.attn_pool.mlp.fc1.out_features == 40
    torch.testing.assert_close(model(images()), model.head(model.attn_pool(tokens)))


@torch.no_grad()
def test_two_heads_are_averaged():
    model = network(distillation_token=True, distillation_head=True)
    tokens = model.encode(images())
    expected = 0.5 * model.head(tokens[:, 0]) + 0.5 * model.head_dist(tokens[:, 1])
    torch.testing.assert_close(model(images()), expected)


@torch.no_grad()
@pytest.mark.parametrize("place", ["before_pool", "after_pool"])
def test_the_final_norm_stands_on_its_side_of_the_mean(place):
    model = network(pool="mean", final_norm=place)
    tokens = model.embed(images())
    for block in model.blocks:
        tokens = block(tokens)
    patches = tokens[:, 1:]
    pooled = model.norm(patches).mean(1) if place == "before_pool" else model.fc_norm(patches.mean(1))
    torch.testing.assert_close(model(images()), model.head(pooled), rtol=1e-4, atol=1e-4)
