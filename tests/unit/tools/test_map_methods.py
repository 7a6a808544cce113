"""lab/benchmarks/maps/: each method of others, by what defines it."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor

from lab.benchmarks.maps.gradients import generic_attribution, input_times_gradient, integrated_gradients
from lab.benchmarks.maps.methods import occlusion
from lab.benchmarks.maps.passes import AttnLrp, CpLrp, Rules, run
from model.vit import VisionTransformer
from tests.support.toy import toy_checkpoint

LABELS = torch.tensor([4, 1])
PATCH = 8


@pytest.fixture(scope="module")
def model() -> VisionTransformer:
    return toy_checkpoint().model.double()


@pytest.fixture(scope="module")
def images() -> Tensor:
    return torch.randn(2, 3, 24, 40, dtype=torch.double, generator=torch.Generator().manual_seed(0))


def logits(model: VisionTransformer, images: Tensor) -> Tensor:
    return model(images).gather(1, LABELS[:, None]).squeeze(1).detach()


@pytest.mark.parametrize("rules", [Rules(), AttnLrp(), CpLrp()], ids=lambda rules: type(rules).__name__)
def test_rules_change_no_number_of_the_forward_pass(model, images, rules):
    result = run(model, images, rules)
    assert torch.allclose(result.logits, model(images), atol=1e-10)
    assert torch.allclose(torch.stack(result.matrices, 1), model.attentions(images), atol=1e-12)


def test_input_times_gradient_is_the_slope_as_a_patch_fades(model, images):
    faded = images.clone()
    faded[:, :, 8:16, 16:24] *= 1 - 1e-6  # row 1, column 2
    result = input_times_gradient(model, images, LABELS, Rules())
    assert result.shape == (2, 15)
    assert torch.allclose(result[:, 7], (logits(model, images) - logits(model, faded)) / 1e-6, rtol=1e-3)


def test_integrated_gradients_are_complete(model, images):
    """Sundararajan et al. 2017, Proposition 1: they add up to the difference of the logit and that of the baseline."""
    baselines = images.mean(dim=(2, 3), keepdim=True).expand_as(images)
    expected = logits(model, images) - logits(model, baselines)
    maps = (integrated_gradients(model, images, LABELS, baselines, steps=steps) for steps in (16, 256))
    missing = [(of_pixels.sum(1) - expected).abs().max() for of_pixels in maps]
    assert missing[1] < 1e-3 * expected.abs().min()
    assert missing[1] < missing[0]


def bare(model: VisionTransformer) -> VisionTransformer:
    """Without what takes relevance and is no pixel: biases, positions, the class token."""
    stripped = copy.deepcopy(model)
    for name, parameter in stripped.named_parameters():
        if name.endswith(("bias", "cls_token", "pos_embed")):
            torch.nn.init.zeros_(parameter)
    return stripped


def test_cp_lrp_keeps_the_whole_logit(model, images):
    """Ali et al. 2022, section 3: with attention and the scales of norms as constants relevance is conserved.

    AttnLRP has the same rules but for attention.
    """
    network = bare(model)
    result = input_times_gradient(network, images, LABELS, CpLrp()).sum(1)
    assert torch.allclose(result, logits(network, images), rtol=1e-8)
    assert not torch.allclose(input_times_gradient(network, images, LABELS, Rules()).sum(1), result, rtol=0.1)


def test_attnlrp_gives_each_factor_of_a_product_half():
    """Achtibat et al. 2024, Proposition 3.3."""
    chance = torch.Generator().manual_seed(2)
    a, b = (torch.randn(*shape, generator=chance).requires_grad_() for shape in ((2, 3, 4), (2, 4, 5)))
    out = AttnLrp().product(a, b)
    of_a, of_b = (x * slope for x, slope in zip((a, b), torch.autograd.grad(out.sum(), (a, b)), strict=True))
    assert torch.allclose(of_a, a * b.sum(-1).unsqueeze(1) / 2)
    assert torch.allclose(of_b.sum(), out.sum() / 2)


def test_generic_attribution_is_the_recursion_of_the_paper():
    """Chefer et al. 2021, equations 5 and 6, element by element, for two layers, two heads and three tokens."""
    draw = torch.Generator().manual_seed(3)
    matrices, gradients = torch.rand(2, 2, 3, 3, generator=draw), torch.randn(2, 2, 3, 3, generator=draw)
    relevance = np.eye(3)
    for matrix, slope in zip(matrices, gradients, strict=True):
        mean = np.zeros((3, 3))
        for i, j in np.ndindex(3, 3):
            mean[i, j] = np.mean([max(float(matrix[h, i, j] * slope[h, i, j]), 0) for h in range(2)])
        relevance = relevance + mean @ relevance
    (found,) = generic_attribution(list(matrices[:, None]), list(gradients[:, None]))
    assert found.numpy() == pytest.approx(relevance[0, 1:])


def test_occlusion_of_a_score_that_adds_up_gives_its_parts_back():
    pixels = np.random.default_rng(4).integers(0, 256, (16, 24, 3), dtype=np.uint8)
    weights = np.arange(6).reshape(2, 3).repeat(8, 0).repeat(8, 1)[..., None]
    mean = np.rint(pixels.mean(axis=(0, 1)))
    result = occlusion(pixels, lambda images: (images * weights).sum(axis=(1, 2, 3)).astype(np.float64), patch=PATCH)
    parts = ((pixels - mean) * weights).reshape(2, 8, 3, 8, 3).sum(axis=(1, 3, 4)).ravel()
    assert result == pytest.approx(parts)
