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

    def __init__(self, channels: int, width: int, *, size: int, stride: int = 1, numerics: Numerics = "timm") -> None:
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


class Root(nn.Module):
    """Images (B, 3, height, width) to (B, 64, height / 4, width / 4)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = StdConv2d(3, ROOT_WIDTH, size=7, stride=2)
        self.norm = nn.GroupNorm(GROUPS, ROOT_WIDTH)

    def forward(self, images: Tensor) -> Tensor:
        x = F.relu(self.norm(self.conv(images)))
        return F.max_pool2d(pad_same(x, 3, 2), kernel_size=3, stride=2)  # after a ReLU, zeros pad as -inf does


class Unit(nn.Module):
    """A bottleneck: 1x1, 3x3 and 1x1 convolutions around a shortcut, which is a projection where the shape changes."""

    def __init__(self, channels: int, width: int, *, stride: int) -> None:
        super().__init__()
        wide = EXPANSION * width
        self.downsample: nn.Module = nn.Identity()
        if channels != wide or stride != 1:
            conv, norm = StdConv2d(channels, wide, size=1, stride=stride), nn.GroupNorm(GROUPS, wide)
            self.downsample = nn.Sequential(OrderedDict(conv=conv, norm=norm))
        self.conv1 = StdConv2d(channels, width, size=1)
        self.norm1 = nn.GroupNorm(GROUPS, width)
        self.conv2 = StdConv2d(width, width, size=3, stride=stride)
        self.norm2 = nn.GroupNorm(GROUPS, width)
        self.conv3 = StdConv2d(width, wide, size=1)
        self.norm3 = nn.GroupNorm(GROUPS, wide)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        return F.relu(self.downsample(x) + self.norm3(self.conv3(y)))


class ResNet(nn.Module):
    """Images (B, 3, height, width) to features (B, channels, height / stride, width / stride).

    `layers` are the units of each stage: (3, 4, 9) under R50+ViT-B/16, (2, 2, 2, 2) under R26+ViT-S/32, () under
    R+ViT-Ti/16. The stride is 4, doubled by every stage after the first.
    """

    def __init__(self, layers: tuple[int, ...], *, numerics: Numerics) -> None:
        super().__init__()
        self.stem = Root()
        self.channels = ROOT_WIDTH
        self.stages = nn.Sequential()
        for i, units in enumerate(layers):
            width, blocks = ROOT_WIDTH << i, nn.Sequential()
            for place in range(units):
                blocks.append(Unit(self.channels, width, stride=2 if i > 0 and place == 0 else 1))
                self.channels = EXPANSION * width
            self.stages.append(nn.Sequential(OrderedDict(blocks=blocks)))
        for module in self.modules():
            if isinstance(module, StdConv2d):
                module.numerics = numerics
            elif isinstance(module, nn.GroupNorm):
                module.eps = 1e-6 if numerics == "flax" else 1e-5

    def forward(self, images: Tensor) -> Tensor:
        return self.stages(self.stem(images))
