"""Encoder blocks: the paper's, and the two other arrangements that published checkpoints use."""

from torch import Tensor, nn

from model.attention import Attention
from model.config import ViTConfig
from model.mlp import Mlp
from model.norm import LayerScale, norm_layer


class Block(nn.Module):
    """Norm, then attention or MLP, then the residual sum (paper, equations 2 and 3)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.norm1 = norm_layer(config, config.width)
        self.attn = Attention(config)
        self.ls1 = LayerScale(config.width) if config.layer_scale else nn.Identity()
        self.norm2 = norm_layer(config, config.width)
        self.mlp = Mlp(config)
        self.ls2 = LayerScale(config.width) if config.layer_scale else nn.Identity()

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.ls1(self.attn(self.norm1(tokens)))
        out: Tensor = tokens + self.ls2(self.mlp(self.norm2(tokens)))
        return out

    def attention(self, tokens: Tensor) -> Tensor:
        """Attention matrices (B, H, T, T) of the tokens that enter the block."""
        return self.attn.weights(self.norm1(tokens))


class ResPostBlock(nn.Module):
    """Attention or MLP, then norm, then the residual sum (Swin v2, arXiv 2111.09883; timm ResPostBlock)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.attn = Attention(config)
        self.norm1 = norm_layer(config, config.width)
        self.mlp = Mlp(config)
        self.norm2 = norm_layer(config, config.width)

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.norm1(self.attn(tokens))
        out: Tensor = tokens + self.norm2(self.mlp(tokens))
        return out

    def attention(self, tokens: Tensor) -> Tensor:
        """Attention matrices (B, H, T, T) of the tokens that enter the block."""
        return self.attn.weights(tokens)


class ParallelBlock(nn.Module):
    """Attention and MLP side by side on one norm (ViT-22B, arXiv 2302.05442; timm ParallelScalingBlock).

    timm fuses fc1 and qkv into one `in_proj`; here they are two, with the numbers of the other blocks.
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.norm1 = norm_layer(config, config.width)
        self.attn = Attention(config)
        self.mlp = Mlp(config)
        self.ls1 = LayerScale(config.width) if config.layer_scale else nn.Identity()

    def forward(self, tokens: Tensor) -> Tensor:
        normed = self.norm1(tokens)
        out: Tensor = tokens + self.ls1(self.attn(normed) + self.mlp(normed))
        return out

    def attention(self, tokens: Tensor) -> Tensor:
        """Attention matrices (B, H, T, T) of the tokens that enter the block."""
        return self.attn.weights(self.norm1(tokens))


EncoderBlock = Block | ResPostBlock | ParallelBlock
BLOCKS: dict[str, type[EncoderBlock]] = {
    "pre_norm": Block,
    "res_post": ResPostBlock,
    "parallel": ParallelBlock,
}
