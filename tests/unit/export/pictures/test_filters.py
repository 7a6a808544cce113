"""export/pictures/filters.py: the components are those of the kernels that see pixels."""

from io import BytesIO

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from export.pictures.filters import filters, principal_components, rgb_filters
from tests.support.toy import toy_checkpoint


def test_components_and_shares_are_those_of_the_covariance():
    kernels = np.random.default_rng(0).normal(size=(40, 3, 4, 4)) * np.linspace(1, 3, 48).reshape(3, 4, 4)
    found = principal_components(kernels)
    values, vectors = np.linalg.eigh(np.cov(kernels.reshape(len(kernels), -1), rowvar=False))
    values, vectors = values[::-1], vectors.T[::-1]
    assert found.components.shape == (28, 3, 4, 4)
    assert found.explained_variance_ratio == pytest.approx(values[:28] / values.sum())
    alike = np.abs((found.components.reshape(28, -1) * vectors[:28]).sum(axis=1))  # whatever the sign
    assert alike == pytest.approx(1)
    assert all(component.flat[np.abs(component).argmax()] > 0 for component in found.components)


@pytest.mark.parametrize("value", [0.0, 0.3])
def test_filters_that_are_all_the_same_have_no_picture(value):
    model = toy_checkpoint().model
    torch.nn.init.constant_(model.patch_embed.proj.weight, value)
    assert filters(model) is None


def test_the_picture_has_a_tile_for_each_component():
    found = filters(toy_checkpoint().model)
    numbers = found.numbers
    assert (numbers["of"], numbers["filters"]) == ("patch_embed.proj", 32)
    assert np.shape(numbers["components"]) == (28, 3, 8, 8)
    assert sorted(numbers["explained_variance_ratio"], reverse=True) == numbers["explained_variance_ratio"]
    assert 0 < sum(numbers["explained_variance_ratio"]) <= 1
    picture = np.asarray(Image.open(BytesIO(found.png)))
    component = np.array(numbers["components"][8])  # second row, second column of seven
    expected = 255 * (component / np.abs(component).max() / 2 + 0.5)
    tile = picture[92 + 122 : 92 + 122 + 96, 28 + 102 : 28 + 102 + 96]
    assert np.abs(tile[6::12, 6::12].transpose(2, 0, 1) - expected).max() <= 1


def test_a_hybrid_shows_its_stem():
    model = toy_checkpoint(stem_layers=(1,)).model
    kernels, *_ = rgb_filters(model)
    stem = model.patch_embed.backbone.stem.conv
    assert kernels == pytest.approx(stem.kernel().detach().numpy())
    assert kernels.shape == (64, 3, 7, 7)
    found = filters(model)
    assert "stem" in found.title
    assert found.numbers["of"] == "patch_embed.backbone.stem.conv"
    assert found.numbers["of"] + ".weight" in model.state_dict()


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_behind_a_norm_of_pixels_the_filters_are_a_convolution_of_the_normed_patch(norm):
    model = toy_checkpoint(patch_norm="dual", norm=norm, patch_bias=False).model
    source = model.patch_embed
    patch = centred = torch.randn(1, 3, 8, 8)
    if norm == "layer":
        torch.nn.init.zeros_(source.norm_patch.bias)
        centred = patch - patch.mean()
    normed = centred / (centred.square().mean() + source.norm_patch.eps).sqrt()
    kernels, *_ = rgb_filters(model)
    flat = patch.permute(0, 2, 3, 1).flatten(1)
    expected = source.proj(source.norm_patch(flat))
    found = F.conv2d(normed, torch.from_numpy(kernels).float()).flatten(1)
    assert torch.allclose(found, expected, atol=1e-4)
