"""ONNX Runtime's operators in PyTorch, so that a graph gives its numbers without being traced.

Where torch does not trace, its own `torch.onnx.ops.symbolic` gives zeros.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor


@contextmanager
def operators_in_torch() -> Iterator[None]:
    """Within it, the modules of export/ compute what their operators compute in ONNX Runtime."""
    with patch("torch.onnx.ops.symbolic", symbolic):
        yield


def symbolic(name: str, inputs: tuple[Tensor | None, ...], attributes: dict[str, int] | None = None, **_: Any):
    operators = {
        "MultiHeadAttention": attention,
        "RotaryEmbedding": turned,
        "QuantizeLinear": quantised,
        "DequantizeLinear": dequantised,
    }
    return operators[name.removeprefix("com.microsoft::")](*inputs, **(attributes or {}))


def attention(query: Tensor, key: Tensor, value: Tensor, *rest: Tensor | None, num_heads: int) -> Tensor:
    """(B, Q, H * d); the last of `rest`, where there are any, is added to the scores."""
    query, key, value = (x.unflatten(-1, (num_heads, -1)).transpose(1, 2) for x in (query, key, value))
    mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=rest[-1] if rest else None)
    return mixed.transpose(1, 2).flatten(2)


def turned(x: Tensor, places: Tensor, cos: Tensor, sin: Tensor, *, interleaved: int) -> Tensor:
    """(B, T, H * d), where a head has twice as many channels as a table (rows, d / 2); `places` are rows (B, T)."""
    cos, sin = cos[places].unsqueeze(2), sin[places].unsqueeze(2)
    heads = x.unflatten(-1, (-1, 2 * cos.shape[-1]))
    pairs = heads.unflatten(-1, (-1, 2) if interleaved else (2, -1))
    one, other = pairs.unbind(-1 if interleaved else -2)
    pairs = torch.stack([one * cos - other * sin, one * sin + other * cos], dim=-1 if interleaved else -2)
    return pairs.flatten(2)


def quantised(x: Tensor, step: Tensor, zero: Tensor) -> Tensor:
    """x in integers of the type of `zero`, the integer of 0."""
    ends = torch.iinfo(zero.dtype)
    return ((x / step).round() + zero).clamp(ends.min, ends.max).to(zero.dtype)


def dequantised(integers: Tensor, step: Tensor, zero: Tensor | None = None, *, axis: int = 1) -> Tensor:
    """Steps are one number, or one for each column."""
    assert axis == 1
    return (integers.float() - (0.0 if zero is None else zero.float())) * step
