"""model/vit.py: what every switch must keep. tests/golden has the numbers of the libraries, and so of the paper."""

import pytest
import torch

from model.variants import variant
from tests.support.switches import SWITCHES
from tests.support.toy import toy_model

SIZE = (32, 48)  # two rows and three columns of patches
IMAGES = torch.randn(3, 3, *SIZE, generator=torch.Generator().manual_seed(1))


def network(**changes):
    return toy_model(variant("mu/16", **{"image_size": SIZE, "num_classes": 5} | changes))


@pytest.fixture(params=[{}, {"heads": 1, "attn_proj": False}, *SWITCHES.values()], ids=["plain", "one head", *SWITCHES])
def family(request):
    return network(**request.param)


@torch.no_grad()
def test_the_embedding_is_the_input_of_the_head(family):
    read = []
    heads = [head for head in (family.head_norm, family.head_dist) if head is not None]
    for head in heads:
        head.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
    family(IMAGES)
    embedding = family.embedding(family.encode(IMAGES))
    assert embedding.shape == (3, family.config.embedding)
    torch.testing.assert_close(embedding, torch.stack(read).mean(0))


@torch.no_grad()
def test_the_shown_attention_mixes_the_values_and_a_block_adds_its_branches(family):
    for block in family.blocks:
        tokens = torch.randn(2, len(family.config.prefix) + 6, 32)
        read = block.read(tokens)
        values = block.attn.qkv(read).chunk(3, dim=-1)[2].unflatten(-1, (family.config.heads, -1)).transpose(1, 2)
        shown = block.attention(tokens)
        torch.testing.assert_close(shown.sum(-1), torch.ones(shown.shape[:-1]))
        mixed = (shown @ values).transpose(1, 2).flatten(2)
        torch.testing.assert_close(block.attn(read), block.attn.proj(block.attn.norm(mixed)), rtol=1e-4, atol=1e-4)
        attended, transformed = block.branches(tokens)
        torch.testing.assert_close(block(tokens), tokens + attended + transformed, rtol=0, atol=0)


def test_learned_2d_positions_join_a_table_of_columns_and_one_of_rows():
    model = network(positions="learned_2d")
    columns, rows = model.pos_embed_x.expand(2, 3, 16), model.pos_embed_y.reshape(2, 1, 16).expand(2, 3, 16)
    torch.testing.assert_close(model.positions().reshape(2, 3, 32), torch.cat([columns, rows], dim=-1))


@torch.no_grad()
@pytest.mark.parametrize(("pool", "first"), [("map", 2), ("map_all", 0)])
def test_an_attention_pool_reads_the_patches_or_all_tokens_by_the_weights_that_it_shows(pool, first):
    model = network(pool=pool, pool_heads=4, registers=1)
    tokens = model.encode(IMAGES)[:, first:]
    values = model.attn_pool.kv(tokens).chunk(2, dim=-1)[1].unflatten(-1, (4, -1)).transpose(1, 2)
    mixed = (model.attn_pool.weights(tokens) @ values).flatten(1)
    torch.testing.assert_close(model.attn_pool.mixed(tokens), mixed, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(model(IMAGES), model.head(model.attn_pool(tokens)))


@torch.no_grad()
def test_a_parallel_block_scales_both_branches_of_one_norm_alike():
    block, tokens = network(block="parallel", layer_scale=True).blocks[0], torch.randn(2, 7, 32)
    normed = block.norm1(tokens)
    torch.testing.assert_close(block(tokens), tokens + block.ls1.gamma * (block.attn(normed) + block.mlp(normed)))
