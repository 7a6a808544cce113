"""Encoder blocks: the paper's, and two other arrangements in published checkpoints."""

from torch import Tensor, nn

from model.attention import Attention
from model.config import ViTConfig
from model.mlp import Mlp
from model.norm import LayerScale, norm_layer


class EncoderBlock(nn.Module):
    """Attention and an MLP, whose outputs are added to the tokens. Subclasses place the norms."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.norm1 = norm_layer(config, config.width)
        self.attn = Attention(config)
        self.ls1 = LayerScale(config.width) if config.layer_scale else nn.Identity()
        self.norm2 = norm_layer(config, config.width)
        self.mlp = Mlp(config)
        self.ls2 = LayerScale(config.width) if config.layer_scale else nn.Identity()

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.attended(tokens)  # computed once: the gradient keeps every sum
        return tokens + self.transformed(tokens)

    def branches(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The tensors that attention and the MLP add to the tokens, each (B, T, D)."""
        attended = self.attended(tokens)
        return attended, self.transformed(tokens + attended)

    def attended(self, tokens: Tensor) -> Tensor:
        """What attention adds to the tokens that enter the block, (B, T, D)."""
        return self.ls1(self.attn(self.read(tokens)))

    def transformed(self, tokens: Tensor) -> Tensor:
        """What the MLP adds to the tokens with attention, (B, T, D)."""
        raise NotImplementedError  # ParallelBlock has none: its MLP does not read what attention adds

    def read(self, tokens: Tensor) -> Tensor:
        """The input of attention, (B, T, D)."""
        return self.norm1(tokens)

    def attention(self, tokens: Tensor) -> Tensor:
        """Attention matrices (B, H, T, T) of the tokens that enter the block."""
        return self.attn.weights(self.read(tokens))


class Block(EncoderBlock):
    """Norm, then attention or MLP, then the residual sum (paper, equations 2 and 3)."""

    def transformed(self, tokens: Tensor) -> Tensor:
        return self.ls2(self.mlp(self.norm2(tokens)))


class ResPostBlock(EncoderBlock):
    """Attention or MLP, then norm, then the residual sum (Swin v2, arXiv 2111.09883; timm ResPostBlock)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        del self.ls1, self.ls2

    def attended(self, tokens: Tensor) -> Tensor:
        return self.norm1(self.attn(tokens))

    def transformed(self, tokens: Tensor) -> Tensor:
        return self.norm2(self.mlp(tokens))

    def read(self, tokens: Tensor) -> Tensor:
        return tokens


class ParallelBlock(EncoderBlock):
    """Attention and MLP side by side on one norm (ViT-22B, arXiv 2302.05442; timm ParallelScalingBlock).

    timm fuses fc1 and qkv into one `in_proj`; here they are two layers, named as in the other blocks.
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        del self.norm2, self.ls2

    def forward(self, tokens: Tensor) -> Tensor:
        attended, transformed = self.branches(tokens)
        return tokens + attended + transformed

    def branches(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        normed = self.read(tokens)
        return self.ls1(self.attn(normed)), self.ls1(self.mlp(normed))


BLOCKS: dict[str, type[EncoderBlock]] = {"pre_norm": Block, "res_post": ResPostBlock, "parallel": ParallelBlock}
