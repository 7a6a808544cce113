"""model/patch_embed.py: patches in reading order, and the norms around their projection."""

import torch
import torch.nn.functional as F

from model.variants import variant
from tests.support.toy import toy_model

IMAGES = torch.randn(2, 3, 32, 48, generator=torch.Generator().manual_seed(3))


def patch_embed(**changes):
    return toy_model(variant("mu/16", image_size=(32, 48), num_classes=5, **changes)).patch_embed


@torch.no_grad()
def test_token_4_is_the_second_patch_of_the_second_row():
    embed = patch_embed()
    patch = IMAGES[:, :, 16:32, 16:32].flatten(1)
    expected = patch @ embed.proj.weight.flatten(1).T + embed.proj.bias
    torch.testing.assert_close(embed(IMAGES)[:, 4], expected, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_dual_norm_flattens_a_patch_by_rows_columns_channels():
    embed = patch_embed(patch_norm="dual")
    patch = IMAGES[:, :, 16:32, 16:32].permute(0, 2, 3, 1).flatten(1)
    x = F.layer_norm(patch, (768,), embed.norm_patch.weight, embed.norm_patch.bias, eps=1e-6)
    x = F.layer_norm(embed.proj(x), (32,), embed.norm.weight, embed.norm.bias, eps=1e-6)
    torch.testing.assert_close(embed(IMAGES)[:, 4], x, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_dual_norm_does_not_see_brightness_and_contrast():
    embed = patch_embed(patch_norm="dual")
    torch.testing.assert_close(embed(2 * IMAGES + 3), embed(IMAGES), rtol=1e-3, atol=1e-3)


@torch.no_grad()
def test_a_norm_after_the_projection():
    embed, plain = patch_embed(patch_norm="after"), patch_embed()
    plain.proj.load_state_dict(embed.proj.state_dict())
    torch.testing.assert_close(embed(IMAGES), embed.norm(plain(IMAGES)))


def test_a_stem_leaves_the_rest_of_the_patch_to_the_projection():
    embed = patch_embed(stem_layers=(1,))  # stride 4 and 256 channels
    assert embed.proj.weight.shape == (32, 256, 4, 4)
    assert embed(IMAGES).shape == (2, 6, 32)
