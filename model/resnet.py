"""The stem of a hybrid: a ResNet with standardised convolutions and group norms (BiT, arXiv 1912.11370).

Google's `vit_jax/models_resnet.py`; the same as timm's ResNetV2 with preact=False and Hugging Face's BiT with
"bottleneck" layers. Parameter names are timm's. Their constants
differ: Google divides a kernel by std + 1e-5 and a group by sqrt(var + 1e-6), timm and Hugging Face by
sqrt(var + 1e-8) and sqrt(var + 1e-5).
"""

from collections import OrderedDict
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Numerics = Literal["timm", "flax"]
ROOT_WIDTH = 64
EXPANSION = 4  # output channels of a unit to its inner channels
GROUPS = 32


class StdConv2d(nn.Conv2d):
    """A bias-free convolution whose kernel has mean 0 and variance 1 for each output channel (arXiv 1903.10520)."""

    def __init__(self, channels: int, width: int, *, size: int, stride: int = 1, numerics: Numerics) -> None:
        super().__init__(channels, width, kernel_size=size, stride=stride, bias=False)
        self.numerics = numerics

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(pad_same(x, self.kernel_size[0], self.stride[0]), self.kernel(), stride=self.stride)

    def kernel(self) -> Tensor:
        """The standardised weight, (out, in, size, size)."""
        variance, mean = torch.var_mean(self.weight, dim=(1, 2, 3), correction=0, keepdim=True)
        std = variance.sqrt() + 1e-5 if self.numerics == "flax" else (variance + 1e-8).sqrt()
        return (self.weight - mean) / std


def pad_same(x: Tensor, size: int, stride: int) -> Tensor:
    """TensorFlow's "SAME": ceil(side / stride) outputs a side; an odd pixel of padding is added below and right."""
    down, across = (max((-(-side // stride) - 1) * stride + size - side, 0) for side in x.shape[-2:])
    return F.pad(x, (across // 2, across - across // 2, down // 2, down - down // 2))


def group_norm(width: int, numerics: Numerics) -> nn.GroupNorm:
    return nn.GroupNorm(GROUPS, width, eps=1e-6 if numerics == "flax" else 1e-5)


class Root(nn.Module):
    """Images (B, 3, height, width) to (B, 64, height / 4, width / 4)."""

    def __init__(self, *, numerics: Numerics) -> None:
        super().__init__()
        self.conv = StdConv2d(3, ROOT_WIDTH, size=7, stride=2, numerics=numerics)
        self.norm = group_norm(ROOT_WIDTH, numerics)

    def forward(self, images: Tensor) -> Tensor:
        x = F.relu(self.norm(self.conv(images)))
        return F.max_pool2d(pad_same(x, 3, 2), kernel_size=3, stride=2)  # after a ReLU, zeros pad as -inf does


def shortcut(channels: int, width: int, *, stride: int, numerics: Numerics) -> nn.Sequential:
    """The projection that carries a unit's input past it where the shape changes."""
    conv = StdConv2d(channels, width, size=1, stride=stride, numerics=numerics)
    return nn.Sequential(OrderedDict(conv=conv, norm=group_norm(width, numerics)))


class Unit(nn.Module):
    """A bottleneck: 1x1, 3x3 and 1x1 convolutions around a shortcut."""

    def __init__(self, channels: int, width: int, *, stride: int, numerics: Numerics) -> None:
        super().__init__()
        wide = EXPANSION * width
        changes = channels != wide or stride != 1
        self.downsample = shortcut(channels, wide, stride=stride, numerics=numerics) if changes else nn.Identity()
        self.conv1 = StdConv2d(channels, width, size=1, numerics=numerics)
        self.norm1 = group_norm(width, numerics)
        self.conv2 = StdConv2d(width, width, size=3, stride=stride, numerics=numerics)
        self.norm2 = group_norm(width, numerics)
        self.conv3 = StdConv2d(width, wide, size=1, numerics=numerics)
        self.norm3 = group_norm(wide, numerics)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        return F.relu(self.downsample(x) + self.norm3(self.conv3(y)))


def stage(channels: int, width: int, *, units: int, stride: int, numerics: Numerics) -> nn.Sequential:
    """Units of one width; the first of them changes the shape."""
    first = Unit(channels, width, stride=stride, numerics=numerics)
    others = (Unit(EXPANSION * width, width, stride=1, numerics=numerics) for _ in range(units - 1))
    return nn.Sequential(OrderedDict(blocks=nn.Sequential(first, *others)))


class ResNet(nn.Module):
    """Images (B, 3, height, width) to features (B, channels, height / stride, width / stride).

    `layers` are the units of each stage: (3, 4, 9) under R50+ViT-B/16, (2, 2, 2, 2) under R26+ViT-S/32, () under
    R+ViT-Ti/16. The stride is 4, doubled by every stage after the first.
    """

    def __init__(self, layers: tuple[int, ...], *, numerics: Numerics) -> None:
        super().__init__()
        self.stem = Root(numerics=numerics)
        self.channels = ROOT_WIDTH
        self.stages = nn.Sequential()
        for i, units in enumerate(layers):
            width, stride = ROOT_WIDTH << i, 1 if i == 0 else 2
            self.stages.append(stage(self.channels, width, units=units, stride=stride, numerics=numerics))
            self.channels = EXPANSION * width

    def forward(self, images: Tensor) -> Tensor:
        return self.stages(self.stem(images))
