"""Images (B, 3, height, width) to patch tokens (B, rows * columns, D)."""

from torch import Tensor, nn

from model.config import ViTConfig
from model.norm import norm_layer
from model.resnet import ResNet


class PatchEmbed(nn.Module):
    """Cuts the image, or a stem's feature map of it (paper, section 3.1, "Hybrid"), and projects each patch."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        size = config.patch_size // config.stem_stride
        self.backbone: ResNet | None = None
        if config.stem_layers is not None:
            self.backbone = ResNet(config.stem_layers, numerics=config.stem_numerics)
        channels = 3 if self.backbone is None else self.backbone.channels
        self.proj = nn.Conv2d(channels, config.width, kernel_size=size, stride=size, bias=config.patch_bias)
        self.norm = norm_layer(config, config.width) if config.patch_norm == "after" else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        features = images if self.backbone is None else self.backbone(images)
        patches: Tensor = self.proj(features)  # (B, D, rows, columns)
        return self.norm(patches.flatten(2).transpose(1, 2))  # (B, rows * columns, D)


class DualNormPatchEmbed(nn.Module):
    """LayerNorm, Linear, LayerNorm on flattened patches (Dual PatchNorm, arXiv 2302.01327; vit-pytorch `vit.py`).

    Because of the first norm the projection is not a convolution. A patch is flattened by rows, columns, then channels.
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.patch_size = config.patch_size
        pixels = 3 * config.patch_size**2
        self.norm_patch = norm_layer(config, pixels)
        self.proj = nn.Linear(pixels, config.width, bias=config.patch_bias)
        self.norm = norm_layer(config, config.width)

    def forward(self, images: Tensor) -> Tensor:
        p = self.patch_size
        patches = images.unfold(2, p, p).unfold(3, p, p)  # (B, 3, rows, columns, p, p)
        patches = patches.permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)  # (B, rows * columns, p * p * 3)
        return self.norm(self.proj(self.norm_patch(patches)))
