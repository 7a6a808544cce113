"""Weights to 8-bit integers, where what one is off by is made good by those after it: GPTQ (arXiv 2210.17323)."""

import torch
from torch import Tensor

LARGEST_INT8 = 127  # symmetric, so that weights need no zero point
LARGEST_PAIR = 128  # of two neighbouring weights of an output, together
DAMPING = 0.1  # of the mean square of an input: so much is added to each, as other images have other inputs
SMALLEST = 1e-12
BLOCK = 64  # weights of an output whose errors are passed on to the others at once


@torch.no_grad()
def rounded(weight: Tensor, scale: Tensor, moments: Tensor) -> Tensor:
    """Integers (in, out), int8, which times `scale` (out,) give nearly the products of `weight` (in, out).

    `moments` (in, in) are the means of the products of each two inputs. If there are none but of each with itself, each
    weight is rounded to the nearest integer.
    """
    left = (weight / scale).double()
    moments = moments.double()
    damping = (DAMPING * moments.diagonal().mean()).clamp(min=SMALLEST)
    damped = moments + damping * torch.eye(len(moments), dtype=moments.dtype)
    passed = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(damped)), upper=True)
    integers = torch.zeros_like(left)
    for start in range(0, len(left), BLOCK):
        end = min(start + BLOCK, len(left))
        errors = torch.zeros_like(left[start:end])
        for place in range(start, end):
            most = torch.full_like(scale, LARGEST_INT8, dtype=left.dtype)
            least = -most
            if place % 2:
                before = integers[place - 1]
                most, least = most.minimum(LARGEST_PAIR - before), least.maximum(-LARGEST_PAIR - before)
            integers[place] = left[place].round().clamp(least, most)
            errors[place - start] = (left[place] - integers[place]) / passed[place, place]
            left[place + 1 : end] -= passed[place, place + 1 : end, None] * errors[place - start]
        left[end:] -= passed[start:end, end:].T @ errors
    return integers.to(torch.int8)
