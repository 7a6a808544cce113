"""Maps from gradients of a logit with respect to pixels: input x gradient, relevance, integrated gradients.

In shapes: B images of the network's input, (B, 3, height, width), and N patches.
"""

import torch
from torch import Tensor

from model.vit import VisionTransformer
from tests.benchmarks.maps.passes import Rules, run


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
