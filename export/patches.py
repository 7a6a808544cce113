"""Patch embeddings that take 8-bit images (B, height, width, 3), normalisation included."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import ViTConfig
from model.patch_embed import DualNormPatchEmbed, PatchEmbed
from model.preprocessing import Preprocessing
from model.resnet import StdConv2d, pad_same


def factors(preprocessing: Preprocessing) -> tuple[Tensor, Tensor]:
    """(scale, shift), float64 (3,) each: pixel * scale + shift is (pixel / 255 - mean) / std."""
    mean, std = (torch.tensor(v, dtype=torch.double) for v in (preprocessing.mean, preprocessing.std))
    return 1 / (255 * std), -mean / std


class FoldedPatchEmbed(nn.Module):
    """A reshape and a linear layer. The normalisation of pixels is folded into it unless a norm comes before it."""

    def __init__(
        self, source: PatchEmbed | DualNormPatchEmbed, config: ViTConfig, preprocessing: Preprocessing
    ) -> None:
        super().__init__()
        self.patch_size, self.grid = config.patch_size, config.grid
        scale, shift = factors(preprocessing)
        self.norm = source.norm
        self.norm_patch: nn.Module | None = None
        if isinstance(source, DualNormPatchEmbed):
            self.norm_patch = source.norm_patch
            per_patch = config.patch_size**2
            self.scale = nn.Parameter(scale.float().repeat(per_patch))  # (p * p * 3,)
            self.shift = nn.Parameter(shift.float().repeat(per_patch))
            self.proj = source.proj
        else:
            self.proj = self._folded(source.proj, scale, shift)

    @staticmethod
    def _folded(conv: nn.Conv2d, scale: Tensor, shift: Tensor) -> nn.Linear:
        kernel = conv.weight.detach().double()  # (D, 3, p, p)
        bias = (kernel.sum((2, 3)) * shift).sum(1)
        if conv.bias is not None:
            bias = bias + conv.bias.detach().double()
        weight = (kernel * scale[:, None, None]).permute(0, 2, 3, 1).flatten(1)  # (D, p * p * 3)
        proj = nn.Linear(weight.shape[1], weight.shape[0])
        proj.weight, proj.bias = nn.Parameter(weight.float()), nn.Parameter(bias.float())
        return proj

    def forward(self, images: Tensor) -> Tensor:
        (rows, columns), p = self.grid, self.patch_size
        patches = images.reshape(-1, rows, p, columns, p, 3).transpose(2, 3)  # (B, rows, columns, p, p, 3)
        pixels = patches.reshape(-1, rows * columns, p * p * 3).float()
        if self.norm_patch is not None:
            pixels = self.norm_patch(pixels * self.scale + self.shift)
        return self.norm(self.proj(pixels))


class StemPatchEmbed(nn.Module):
    """The patch embedding of a hybrid. Its convolutions pad with zeros, so the pixels have to be normalised first."""

    def __init__(self, source: PatchEmbed, preprocessing: Preprocessing) -> None:
        super().__init__()
        self.source = source
        scale, shift = factors(preprocessing)
        self.scale, self.shift = nn.Parameter(scale.float()), nn.Parameter(shift.float())

    def forward(self, images: Tensor) -> Tensor:
        return self.source((images.float() * self.scale + self.shift).permute(0, 3, 1, 2))


class FixedConv2d(nn.Module):
    """A standardised convolution whose kernel is computed once, at export."""

    def __init__(self, source: StdConv2d) -> None:
        super().__init__()
        self.weight = nn.Parameter(source.kernel().detach())
        self.stride = source.stride[0]

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(pad_same(x, self.weight.shape[-1], self.stride), self.weight, stride=self.stride)
