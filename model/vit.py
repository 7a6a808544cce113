"""The Vision Transformer of "An Image is Worth 16x16 Words" (arXiv 2010.11929, section 3.1) in plain PyTorch.

One network for the plain ViTs of every ecosystem: model/config.py lists the switches and which models need them.
Parameter names follow the timm / DeiT / DINO line, so that those checkpoints load without renaming. Nothing here
depends on files, ONNX or HTTP.
In shapes: B batch, N patches, T tokens (prefix and patches), D width, H heads, L layers, C classes, F width of what the
head reads.
"""

import torch
from torch import Tensor, nn

from model.blocks import BLOCKS, EncoderBlock
from model.config import ViTConfig
from model.mlp import OF_VECTORS
from model.norm import UnitNorm, norm_layer
from model.patch_embed import DualNormPatchEmbed, PatchEmbed
from model.pooling import AttentionPool


class VisionTransformer(nn.Module):
    """Normalised float images (B, 3, height, width) to logits (B, C); without a head to embeddings (B, F)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config = config
        width, (rows, columns) = config.width, config.grid
        self.patch_embed = (DualNormPatchEmbed if config.patch_norm == "dual" else PatchEmbed)(config)

        # The prefix. Its own positions are constants and are part of these tokens: position tables cover patches alone.
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width)) if config.class_token else None
        self.dist_token = nn.Parameter(torch.zeros(1, 1, width)) if config.distillation_token else None
        self.reg_token = nn.Parameter(torch.zeros(1, config.registers, width)) if config.registers else None

        self.pos_embed: Tensor | None
        if config.positions == "sincos2d":
            self.pos_embed = nn.Buffer(sincos2d(config.grid, width), persistent=False)
        else:
            learned = config.positions == "learned"
            self.pos_embed = nn.Parameter(torch.zeros(1, rows * columns, width)) if learned else None
        two_d = config.positions == "learned_2d"
        self.pos_embed_x = nn.Parameter(torch.zeros(1, columns, width // 2)) if two_d else None
        self.pos_embed_y = nn.Parameter(torch.zeros(1, rows, width // 2)) if two_d else None

        self.norm_pre = norm_layer(config, width) if config.norm_pre else nn.Identity()
        self.blocks = nn.ModuleList(BLOCKS[config.block](config) for _ in range(config.depth))
        self.norm = norm_layer(config, width) if config.final_norm == "before_pool" else nn.Identity()
        self.attn_pool = AttentionPool(config) if config.pools_by_attention else None
        self.fc_norm = norm_layer(config, width) if config.final_norm == "after_pool" else nn.Identity()
        hidden = config.representation_size
        self.pre_logits = nn.Linear(config.features, hidden, config.representation_bias) if hidden else None
        self.head_norm = UnitNorm() if config.head == "cosine" and config.num_classes else nn.Identity()
        self.head = self._head(config.embedding)
        self.head_dist = self._head(width) if config.distillation_head else None
        self.init_weights()

    def _head(self, features: int) -> nn.Module:
        config = self.config
        return nn.Linear(features, config.num_classes, config.head_bias) if config.num_classes else nn.Identity()

    def init_weights(self) -> None:
        """Truncated normal of 0.02 for every token, position and matrix, zero for every bias."""
        for name in ("pos_embed", "pos_embed_x", "pos_embed_y", "cls_token", "dist_token", "reg_token"):
            parameter = getattr(self, name)
            if isinstance(parameter, nn.Parameter):
                nn.init.trunc_normal_(parameter, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Conv2d):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, AttentionPool):
                nn.init.trunc_normal_(module.latent, std=0.02)

    def forward(self, images: Tensor) -> Tensor:
        return self.classify(self.encode(images))

    def positions(self) -> Tensor | None:
        """Positions that are added to the patch tokens, (1, N, D), or None."""
        if self.pos_embed_x is None or self.pos_embed_y is None:
            return self.pos_embed
        rows, columns = self.config.grid
        x = self.pos_embed_x.unsqueeze(1).expand(-1, rows, -1, -1)  # (1, rows, columns, D/2)
        y = self.pos_embed_y.unsqueeze(2).expand(-1, -1, columns, -1)
        return torch.cat([x, y], dim=-1).flatten(1, 2)

    def embed(self, images: Tensor) -> Tensor:
        """Tokens that enter the first block, (B, T, D)."""
        patches: Tensor = self.patch_embed(images)
        positions = self.positions()
        if positions is not None:
            patches = patches + positions
        prefix = [token for token in (self.cls_token, self.dist_token, self.reg_token) if token is not None]
        tokens = torch.cat([*(token.expand(patches.shape[0], -1, -1) for token in prefix), patches], dim=1)
        return self.norm_pre(tokens)

    def layers(self, images: Tensor) -> list[Tensor]:
        """Tokens that enter the first block, and those that leave each block: L + 1 of (B, T, D)."""
        layers = [self.embed(images)]
        for block in self.blocks:
            layers.append(block(layers[-1]))
        return layers

    def encode(self, images: Tensor) -> Tensor:
        """Tokens after the final norm, (B, T, D), or those of the last `head_layers` blocks, (B, T, layers * D)."""
        return self.normed(self.layers(images))

    def normed(self, layers: list[Tensor]) -> Tensor:
        """The tokens that the head reads, from the output of `layers`: (B, T, D) or (B, T, layers * D)."""
        return torch.cat([self.norm(tokens) for tokens in layers[-self.config.head_layers :]], dim=-1)

    def classify(self, tokens: Tensor) -> Tensor:
        """Tokens of `encode` to logits (B, C)."""
        logits: Tensor = self.head(self.head_norm(self.read(tokens)))
        if self.head_dist is not None:
            logits = (logits + self.head_dist(tokens[:, 1])) / 2
        return logits

    def embedding(self, tokens: Tensor) -> Tensor:
        """Tokens of `encode` to what the head reads, (B, F): pooled, normed, and after the hidden layer, if any.

        Where two heads read two tokens, their mean, as in timm's `VisionTransformerDistilled.forward_head`.
        """
        read = self.read(tokens)
        return read if self.head_dist is None else (read + tokens[:, 1]) / 2

    def read(self, tokens: Tensor) -> Tensor:
        """Tokens of `encode` to the vector that `head` reads, (B, F); a cosine head reads its direction."""
        pooled: Tensor = self.fc_norm(self.pooled(tokens))
        if self.pre_logits is None:
            return pooled
        hidden: Tensor = self.pre_logits(pooled)
        return OF_VECTORS[self.config.representation](hidden)

    def pooled(self, tokens: Tensor) -> Tensor:
        """Tokens of `encode` to one vector per image, (B, features)."""
        patches = tokens[:, len(self.config.prefix) :, -self.config.width :]  # of the last block
        match self.config.pool:
            case "cls":
                return tokens[:, 0]
            case "mean":
                return patches.mean(dim=1)
            case "mean_all":  # IJEPA; vit-pytorch before it dropped the class token here
                return tokens.mean(dim=1)
            case "cls_mean":  # DINO ViT-B, DINOv2 and Hugging Face's Dinov2ForImageClassification
                return torch.cat([tokens[:, 0], patches.mean(dim=1)], dim=-1)
            case "map" | "map_all":
                assert self.attn_pool is not None
                return self.attn_pool(patches if self.config.pool == "map" else tokens)

    def attentions(self, images: Tensor) -> Tensor:
        """Every attention matrix after softmax, (B, L, H, T, T)."""
        matrices = []
        for block, tokens in zip(self.blocks, self.layers(images), strict=False):  # the last layer enters no block
            assert isinstance(block, EncoderBlock)
            matrices.append(block.attention(tokens))
        return torch.stack(matrices, dim=1)


def sincos2d(grid: tuple[int, int], width: int) -> Tensor:
    """Fixed positions (1, rows * columns, D): sin x, cos x, sin y, cos y, a quarter of the width each.

    big_vision `models/vit.py` posemb_sincos_2d (arXiv 2205.01580), vit-pytorch `simple_vit.py`. MoCo v3 and MAE use
    other frequencies; their files hold the table, which is loaded as learned positions.
    """
    rows, columns = grid
    frequencies = 10_000.0 ** -(torch.arange(width // 4) / (width // 4 - 1))
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))  # (N, 2)
    y, x = (place[:, None] * frequencies for place in places.unbind(1))  # each (N, D/4)
    return torch.cat([x.sin(), x.cos(), y.sin(), y.cos()], dim=1).unsqueeze(0)
