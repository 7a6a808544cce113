"""Maps from gradients of a logit: with respect to attention, and to pixels.

In shapes: B images of the network's input, (B, 3, height, width), H heads, T tokens, N patches. `matrices` and
`gradients` are those of each layer, (B, H, T, T).
"""

import torch
from torch import Tensor

from lab.benchmarks.maps.passes import Rules, run
from model.vit import VisionTransformer


def attention_and_gradients(
    model: VisionTransformer, images: Tensor, labels: Tensor
) -> tuple[list[Tensor], list[Tensor]]:
    """`matrices`, and the gradients of each image's logit of its label with respect to them."""
    logits, matrices = run(model, images, Rules())
    gradients = torch.autograd.grad(logits.gather(1, labels[:, None]).sum(), matrices)
    return [matrix.detach() for matrix in matrices], list(gradients)


def generic_attribution(matrices: list[Tensor], gradients: list[Tensor]) -> Tensor:
    """(B, N). Chefer et al. 2021, arXiv 2103.15679, equations 5 and 6."""
    relevance = torch.eye(matrices[0].shape[-1]).expand(len(matrices[0]), -1, -1)
    for positive in _positive(matrices, gradients):
        relevance = relevance + positive @ relevance
    return relevance[:, 0, 1:]


def positive_attention_gradient(matrices: list[Tensor], gradients: list[Tensor]) -> Tensor:
    """(B, N): the class token's row of the same mean, summed over layers."""
    return torch.stack(_positive(matrices, gradients)).sum(0)[:, 0, 1:]


def grad_cam(matrices: list[Tensor], gradients: list[Tensor]) -> Tensor:
    """(B, N), of the last layer: heads of the class token's row, weighted by the mean gradient over patches.

    Selvaraju et al. 2017, arXiv 1610.02391, as Chefer et al. apply it to attention (`generate_cam_attn`).
    """
    row, slope = matrices[-1][:, :, 0, 1:], gradients[-1][:, :, 0, 1:]
    return (slope.mean(-1, keepdim=True) * row).mean(1).clamp(min=0)


def _positive(matrices: list[Tensor], gradients: list[Tensor]) -> list[Tensor]:
    """(B, T, T) of each layer: the mean over heads of what is positive in attention times gradient."""
    pairs = zip(matrices, gradients, strict=True)
    return [(matrix * gradient).clamp(min=0).mean(1) for matrix, gradient in pairs]


def input_times_gradient(model: VisionTransformer, images: Tensor, labels: Tensor, rules: Rules) -> Tensor:
    """(B, N): the sum over the values of each patch. With the rules of LRP it is their relevance."""
    return per_patch(images * gradient(model, images, labels, rules), model.config.patch_size)


def integrated_gradients(
    model: VisionTransformer, images: Tensor, labels: Tensor, baselines: Tensor, *, steps: int
) -> Tensor:
    """(B, N), on the straight way from `baselines`, in the middle of each step.

    Sundararajan et al. 2017, arXiv 1703.01365, section 3.
    """
    total = torch.zeros_like(images)
    for step in range(steps):
        there = baselines + (step + 0.5) / steps * (images - baselines)
        total += gradient(model, there, labels, Rules())
    return per_patch((images - baselines) * total / steps, model.config.patch_size)


def gradient(model: VisionTransformer, images: Tensor, labels: Tensor, rules: Rules) -> Tensor:
    """Of each image's logit of its label, with respect to the image."""
    images = images.detach().requires_grad_()
    logits = run(model, images, rules).logits.gather(1, labels[:, None])
    (found,) = torch.autograd.grad(logits.sum(), images)
    return found


def per_patch(values: Tensor, patch: int) -> Tensor:
    """Sums (B, N) of the values (B, 3, height, width) of each patch."""
    return values.unfold(2, patch, patch).unfold(3, patch, patch).sum(dim=(1, 4, 5)).flatten(1)
