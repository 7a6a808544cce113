"""The blocks of a rewritten network in 8-bit integers for the CPU, or in half precision for CUDA.

Everything outside the blocks stays float32: the patch projection, whose weights are small once 1/255 is folded into
them, and the layers from the last norm to the logits. Norms, softmax and evidence are computed in float32 in every
precision. Figures, and alternatives that were tried: docs/precision.md.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from app.bundle import Precision
from app.inference.contract import Pixels
from export.ranges import ranges
from export.rewrite import FusedAttention, FusedRope, Linear
from export.smoothing import smoothed
from model.checkpoints.checkpoint import Checkpoint
from model.vit import VisionTransformer

LARGEST_INT8 = 127  # symmetric, so that weights need no zero point; no two neighbours add up to more than 128
SMALLEST_SCALE = 1e-30  # for an output whose weights are all zero
LARGEST_FP16 = torch.finfo(torch.float16).max


def model_for(checkpoint: Checkpoint, precision: Precision, pixels: Callable[[], Pixels]) -> VisionTransformer:
    """The model to rewrite for `precision`; in float32 it computes what the checkpoint's model computes.

    `pixels` gives the images whose ranges are taken, (n, height, width, 3); fp32 needs none.

    Raises ValueError when the numbers of the model overflow in `precision`. The check of parity would not notice it:
    the kernels of the CPU compute fp16 graphs in float32.
    """
    match precision:
        case "int8":
            return smoothed(checkpoint, pixels())
        case "fp16" | "bf16":
            _check_range(checkpoint, pixels())
    return checkpoint.model


def lower(network: VisionTransformer, precision: Precision) -> None:
    """Change the blocks of the rewritten `network` in place."""
    match precision:
        case "int8":
            _quantise(network.blocks)
        case "fp16":
            network.blocks.half()
        case "bf16":
            _halve(network.blocks)


def _check_range(checkpoint: Checkpoint, pixels: Pixels) -> None:
    blocks = checkpoint.model.blocks
    for name, parameter in blocks.named_parameters(prefix="blocks"):
        if not parameter.abs().max() <= LARGEST_FP16:
            raise ValueError(f"{name} has values beyond {LARGEST_FP16:.0f}, the largest number of fp16")
    modules = dict(blocks.named_modules(prefix="blocks"))
    del modules["blocks"]  # the list itself, which is not called
    for name, reach in zip(modules, ranges(checkpoint, pixels, list(modules.values())), strict=True):
        if not reach.max() <= LARGEST_FP16:
            raise ValueError(f"{name} gives values beyond {LARGEST_FP16:.0f}, the largest number of fp16")


def _halve(blocks: nn.Module) -> None:
    """Products and attention in half precision, and the rest in float32: norms, and the sums of the residual stream.

    float16 stands for bfloat16, which ONNX Runtime does not compute on a CPU: app/inference/openvino.py.
    """
    for module in blocks.modules():
        match module:
            case Linear() | FusedRope():
                module.half()
            case FusedAttention() if module.bias is not None:
                module.bias.data = module.bias.data.half()
            case nn.LayerNorm() | nn.RMSNorm():
                module.register_forward_pre_hook(lambda _, inputs: (inputs[0].float(),))


class QuantisedLinear(nn.Module):
    """x @ weight + bias with both factors rounded to 8 bits: x on the range of the whole tensor, weights by output.

    It consists of two operators that have their own kernels, so that it does not depend on a fusion:
    DynamicQuantizeLinear, one for all layers that read the same tokens, and com.microsoft::MatMulIntegerToFloat, which
    adds the bias.

    The integers give the same sums on every processor. Without VNNI, ONNX Runtime multiplies two neighbouring inputs
    (up to 255) with their weights and adds the products in 16 bits, where they saturate (vpmaddubsw, in
    MlasGemmU8S8KernelAvx2). So the scale is one with which no two neighbouring weights add up to more than 128.
    """

    def __init__(self, source: Linear) -> None:
        super().__init__()
        weight = source.weight.detach()  # (in, out)
        pairs = F.pad(weight, (0, 0, 0, len(weight) % 2)).unflatten(0, (-1, 2)).sum(1)  # (in / 2, out)
        largest = torch.maximum(weight.abs().amax(0), pairs.abs().amax(0))
        self.scale = nn.Buffer((largest / LARGEST_INT8).clamp(min=SMALLEST_SCALE))  # (out,)
        self.integers = nn.Buffer((weight / self.scale).round().to(torch.int8))  # (in, out)
        self.bias = source.bias

    @property
    def weight(self) -> Tensor:
        """The integers times their scale, float32 (in, out)."""
        return self.integers * self.scale

    def forward(self, x: Tensor) -> Tensor:
        integers, scale, zero = torch.onnx.ops.symbolic_multi_out(
            "DynamicQuantizeLinear",
            (x,),
            dtypes=(torch.uint8, torch.float32, torch.uint8),
            shapes=(x.shape, (), ()),
            version=11,
        )
        bias = () if self.bias is None else (None, self.bias)  # None: no zero point
        out: Tensor = torch.onnx.ops.symbolic(
            "com.microsoft::MatMulIntegerToFloat",
            (integers, self.integers, scale, self.scale, zero, *bias),
            dtype=x.dtype,
            shape=(*x.shape[:-1], self.integers.shape[1]),
            version=1,
        )
        return out


def _quantise(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, Linear):
            setattr(module, name, QuantisedLinear(child))
        else:
            _quantise(child)
