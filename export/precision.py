"""The blocks of a rewritten network in 8-bit integers or bfloat16 for the CPU, or in half precision for CUDA.

Everything outside the blocks stays float32: the patch projection, whose weights are small once 1/255 is folded into
them, and the layers from the last norm to the logits. Norms, softmax and evidence are computed in float32 in every
precision; on a GPU, products of float32 are computed in TF32 beside blocks in half precision. Figures:
docs/precision.md.
"""

import copy
import dataclasses

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from app.bundle import Precision
from app.inference.engine import Pixels
from export.headroom import widen
from export.patches import FoldedPatchEmbed
from export.ranges import measure, ranges
from export.rewrite import FusedAttention, FusedRope, HeadTokensBlock, Linear, replace_layers
from export.rounding import LARGEST_INT8, rounded
from export.smoothing import smoothed
from model.checkpoints.checkpoint import Checkpoint
from model.vit import VisionTransformer

LARGEST_UINT8 = 255
LARGEST_IN_ATTENTION = 78  # of queries and keys: two products fit in 16 bits, as 2 * (78 + 128) * 78 does
SMALLEST_SCALE = 1e-30  # for an output whose weights are all zero
LARGEST_FP16 = torch.finfo(torch.float16).max
TF32_DIGITS = 11  # binary; as many as fp16 has
GREY = 128  # of a pixel


def model_for(checkpoint: Checkpoint, precision: Precision, pixels: Pixels | None) -> VisionTransformer:
    """The model to rewrite for `precision`; in float32 it computes what the checkpoint's model computes.

    `pixels` are the images whose ranges are taken, (n, height, width, 3); fp32 needs none.

    Raises ValueError when the numbers of the model overflow in `precision`. The check of parity would not notice it:
    the kernels of the CPU compute fp16 graphs in float32.
    """
    if precision == "fp32":
        return checkpoint.model
    assert pixels is not None
    if precision == "int8":
        model = smoothed(checkpoint, pixels)
        measure(dataclasses.replace(checkpoint, model=model), pixels)
        widen(model)
        return model
    _check_range(checkpoint, pixels)
    return checkpoint.model


def lower(network: VisionTransformer, precision: Precision) -> None:
    """Change the blocks of the rewritten `network` in place."""
    match precision:
        case "int8":
            _quantise(network.blocks)
        case "fp16":
            network.blocks.half()
            _round_projection(network.patch_embed)
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
        if not reach.abs().max() <= LARGEST_FP16:
            raise ValueError(f"{name} gives values beyond {LARGEST_FP16:.0f}, the largest number of fp16")


@torch.no_grad()
def _round_projection(patch_embed: nn.Module) -> None:
    """Round the weights that multiply pixels to TF32, and move the bias so that a grey image keeps its tokens.

    TF32 has the exponent of float32 and TF32_DIGITS digits, and a GPU cuts off the others, so that all products become
    smaller. Rounding has no direction, and what is left of its errors grows with the distance from grey.
    """
    if not isinstance(patch_embed, FoldedPatchEmbed) or patch_embed.norm_patch is not None:
        return
    proj = patch_embed.proj
    assert isinstance(proj, Linear)
    assert proj.bias is not None
    significand, exponent = torch.frexp(proj.weight)
    rounded = torch.ldexp((significand * 2**TF32_DIGITS).round() / 2**TF32_DIGITS, exponent)
    proj.bias += GREY * (proj.weight.double() - rounded.double()).sum(0).float()
    proj.weight.copy_(rounded)


def _halve(blocks: nn.Module) -> None:
    """Products and attention in half precision, and the rest in float32: norms, and the sums of the residual stream.

    float16 stands for bfloat16, which ONNX Runtime does not compute on a CPU: app/inference/openvino.py.
    """
    replace_layers(blocks, {Linear: HalfLinear})
    for module in blocks.modules():
        match module:
            case FusedRope():
                module.half()
            case FusedAttention() if module.bias is not None:
                module.bias.data = module.bias.data.half()
            case nn.LayerNorm() | nn.RMSNorm():
                module.register_forward_pre_hook(lambda _, inputs: (inputs[0].float(),))


class HalfLinear(Linear):
    """x @ weight + bias in half precision.

    In the file the weight is bfloat16, so that OpenVINO reads it where it lies; others get a cast of it.
    """

    def __init__(self, source: Linear) -> None:
        super().__init__(source.weight.bfloat16(), None if source.bias is None else source.bias.half())

    def forward(self, x: Tensor) -> Tensor:
        out = x.half() @ self.weight.half()
        return out if self.bias is None else out + self.bias


class Rounding(nn.Module):
    """x rounded to 8-bit integers and back: multiples of one `step`, and the ends of the range for what is beyond.

    The range was measured at export, so an image's numbers do not depend on those of others in its batch. The operators
    are QuantizeLinear and DequantizeLinear of ONNX; a runtime computes a product of two such tensors in integers.
    """

    def __init__(self, *, step: Tensor, zero: Tensor) -> None:
        super().__init__()
        self.step = nn.Buffer(step.clamp(min=SMALLEST_SCALE))  # ()
        self.zero = nn.Buffer(zero)  # (), uint8 or int8: the integer that stands for 0

    def forward(self, x: Tensor) -> Tensor:
        scale = (self.step, self.zero)
        integers = torch.onnx.ops.symbolic(
            "QuantizeLinear", (x, *scale), dtype=self.zero.dtype, shape=x.shape, version=19
        )
        return torch.onnx.ops.symbolic("DequantizeLinear", (integers, *scale), dtype=x.dtype, shape=x.shape, version=19)


class QuantisedLinear(nn.Module):
    """x @ weight + bias with both factors rounded to 8 bits: x from the least number to the largest, weights by output.

    The integers give the same sums on every processor. Without VNNI, both runtimes multiply two neighbouring inputs (up
    to 255) with their weights and add the products in 16 bits, where they saturate (vpmaddubsw). So the scale is one
    with which no two neighbouring weights add up to more than 128. export/ranges.py has measured x.
    """

    def __init__(self, source: Linear) -> None:
        super().__init__()
        assert source.range is not None
        assert source.moments is not None
        low, high = source.range.clamp(max=0)[0], source.range.clamp(min=0)[1]
        step = ((high - low) / LARGEST_UINT8).clamp(min=SMALLEST_SCALE)
        self.rounding: nn.Module = Rounding(step=step, zero=(-low / step).round().to(torch.uint8))
        weight = source.weight.detach()  # (in, out)
        pairs = F.pad(weight, (0, 0, 0, len(weight) % 2)).unflatten(0, (-1, 2)).sum(1)  # (in / 2, out)
        largest = torch.maximum(weight.abs().amax(0), pairs.abs().amax(0))
        self.scale = nn.Buffer((largest / LARGEST_INT8).clamp(min=SMALLEST_SCALE))  # (out,)
        self.integers = nn.Buffer(rounded(weight, self.scale, source.moments))  # (in, out)
        self.bias = source.bias

    @property
    def weight(self) -> Tensor:
        """The integers times their scale, float32 (in, out)."""
        return self.integers * self.scale

    def forward(self, x: Tensor) -> Tensor:
        # ONNX Runtime has no DequantizeLinear for a weight alone, where x is not rounded.
        weight = self._dequantised(x.dtype) if isinstance(self.rounding, Rounding) else self.weight
        out: Tensor = self.rounding(x) @ weight
        return out if self.bias is None else out + self.bias

    def _dequantised(self, dtype: torch.dtype) -> Tensor:
        """`weight`, by the operator of ONNX that runtimes compute in integers."""
        weight: Tensor = torch.onnx.ops.symbolic(
            "DequantizeLinear",
            (self.integers, self.scale),
            {"axis": 1},
            dtype=dtype,
            shape=self.integers.shape,
            version=19,
        )
        return weight


def _quantise(blocks: nn.Module) -> None:
    replace_layers(blocks, {Linear: QuantisedLinear})
    for module in blocks.modules():
        if isinstance(module, HeadTokensBlock):
            _read_unrounded(module)
        if isinstance(module, FusedAttention) and module.reach is not None:
            zero = torch.zeros((), dtype=torch.int8)
            of_query, of_key = (Rounding(step=largest / LARGEST_IN_ATTENTION, zero=zero) for largest in module.reach)
            module.q_rounding, module.k_rounding = of_query, of_key


def _read_unrounded(last: HeadTokensBlock) -> None:
    """Let the layers that compute the class token alone read it in float32: no later block evens out their errors, and
    one token costs next to nothing. The whole block, which shares their weights, rounds.
    """
    for name in ("attn", "mlp"):
        layers = getattr(last, name)
        kept = {id(tensor): tensor for tensor in (*layers.parameters(), *layers.buffers())}
        setattr(last, name, copy.deepcopy(layers, kept))
    attention = last.get_submodule("attn")
    assert isinstance(attention, FusedAttention)
    attention.reach = None
    for layer in (attention.q, attention.proj, last.mlp.fc1, last.mlp.fc2):
        if isinstance(layer, QuantisedLinear):
            layer.rounding = nn.Identity()
