"""tests/benchmarks/maps/: each method of others, by what defines it."""

import numpy as np
import pytest
import torch
from torch import Tensor

from model.mlp import Mlp
from model.variants import variant
from model.vit import VisionTransformer
from tests.benchmarks.maps.gradients import generic_attribution, input_times_gradient, integrated_gradients
from tests.benchmarks.maps.methods import occlusion
from tests.benchmarks.maps.passes import AttnLrp, CpLrp, Rules, run
from tests.support.toy import toy_model

LABELS = torch.tensor([4, 1])
PATCH = 8


@pytest.fixture(scope="module")
def model() -> VisionTransformer:
    return toy_model(variant("mu/8", image_size=(24, 40), num_classes=7)).double()


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
    missing = [
        (integrated_gradients(model, images, LABELS, baselines, steps=steps).sum(1) - expected).abs().max()
        for steps in (16, 512)
    ]
    assert missing[1] < 1e-3 * expected.abs().min()
    assert missing[1] < missing[0]


def bare(model: VisionTransformer) -> VisionTransformer:
    """Without what takes relevance and is no pixel: biases, positions, the class token."""
    config = variant("mu/8", image_size=(24, 40), num_classes=7)
    stripped = VisionTransformer(config).double()
    stripped.load_state_dict(model.state_dict())
    with torch.no_grad():
        for name, parameter in stripped.named_parameters():
            if name.endswith(("bias", "cls_token", "pos_embed")):
                parameter.zero_()
    return stripped


def test_cp_lrp_keeps_the_whole_logit(model, images):
    """Ali et al. 2022, section 3: with attention and the scales of norms as constants relevance is conserved."""
    network = bare(model)
    result = input_times_gradient(network, images, LABELS, CpLrp()).sum(1)
    assert torch.allclose(result, logits(network, images), rtol=1e-8)
    assert not torch.allclose(input_times_gradient(network, images, LABELS, Rules()).sum(1), result, rtol=0.1)


def relevance(out: Tensor, *of: Tensor) -> list[Tensor]:
    """Of the factors of a sum, where each element of `out` has itself as relevance."""
    return [x * slope for x, slope in zip(of, torch.autograd.grad(out.sum(), of), strict=True)]


def leaf(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(2)).requires_grad_()


def test_attnlrp_gives_each_factor_of_a_product_half():
    """Achtibat et al. 2024, Proposition 3.3."""
    a, b = leaf(2, 3, 4), leaf(2, 4, 5)
    out = AttnLrp().product(a, b)
    of_a, of_b = relevance(out, a, b)
    assert torch.allclose(of_a.sum(), out.sum() / 2)
    assert torch.allclose(of_b.sum(), out.sum() / 2)
    assert torch.allclose(of_a, a * b.sum(-1).unsqueeze(1) / 2)


def test_attnlrp_takes_softmax_by_its_gradient():
    """Achtibat et al. 2024, Proposition 3.1: R_i = x_i (R_i' - s_i sum_j R_j')."""
    scores, arriving = leaf(6), leaf(6).detach() + 1
    shares = AttnLrp().softmax(scores)
    (slope,) = torch.autograd.grad((shares * (arriving / shares.detach())).sum(), scores)
    assert torch.allclose(scores * slope, scores * (arriving - shares * arriving.sum()))


def test_attnlrp_lets_all_relevance_through_norms_and_activations():
    """Achtibat et al. 2024, Proposition 3.4 and the identity rule."""
    norm = torch.nn.LayerNorm(8).double()  # its bias is zero
    torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
    x = leaf(3, 8)
    out = AttnLrp().norm(norm, x)
    assert torch.allclose(out, norm(x))
    assert torch.allclose(relevance(out, x)[0].sum(-1), out.sum(-1))
    mlp = Mlp(variant("mu/8", image_size=(24, 40), num_classes=7))
    near_zero = torch.tensor([-2.0, -1e-9, 0.0, 1e-9, 3.0], dtype=torch.double, requires_grad=True)
    out = AttnLrp().activation(mlp, near_zero)
    assert torch.allclose(out, torch.nn.functional.gelu(near_zero))
    assert torch.allclose(relevance(out, near_zero)[0], out)


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
    assert generic_attribution(*(list(each[:, None]) for each in (matrices, gradients)))[0].numpy() == pytest.approx(
        relevance[0, 1:]
    )


def test_occlusion_of_a_score_that_adds_up_gives_its_parts_back():
    pixels = np.random.default_rng(4).integers(0, 256, (16, 24, 3), dtype=np.uint8)
    weights = np.arange(6).reshape(2, 3).repeat(8, 0).repeat(8, 1)[..., None]
    mean = np.rint(pixels.mean(axis=(0, 1)))
    result = occlusion(pixels, lambda images: (images * weights).sum(axis=(1, 2, 3)).astype(np.float64), patch=PATCH)
    parts = ((pixels - mean) * weights).reshape(2, 8, 3, 8, 3).sum(axis=(1, 3, 4)).ravel()
    assert result == pytest.approx(parts)
