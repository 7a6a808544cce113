"""The two graphs of a bundle, as torch modules over the rewritten network.

In shapes: B batch, N patches, T tokens, H heads, L layers.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from export.rewrite import HeadTokensBlock, rewrite
from model.blocks import EncoderBlock
from model.preprocessing import Preprocessing
from model.vit import VisionTransformer


class ClassifyGraph(nn.Module):
    """images uint8 (B, height, width, 3) -> logits (B, classes)."""

    outputs: tuple[str, ...] = ("logits",)

    def __init__(self, model: VisionTransformer, preprocessing: Preprocessing) -> None:
        super().__init__()
        self.config = model.config
        self.network = rewrite(model, preprocessing)

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        return (self.network(images),)


class ExplainGraph(ClassifyGraph):
    """images -> logits, and every map from the same forward pass.

    attention (B, L, H, T): the row of the class token after softmax; without one, the mean of the rows of the tokens
    that are pooled, weighted as the pool weighs them.
    rollout (B, T): the same row of the product over all layers of (mean over heads + identity) / 2
    (Abnar & Zuidema 2020, arXiv 2005.00928), computed as a row from the last layer to the first.
    """

    outputs = ("logits", "attention", "rollout")

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        network = self.network
        layers = network.layers(images)
        tokens = network.normed(layers)
        logits = network.classify(tokens)
        matrices = []
        for block, entering in zip(network.blocks, layers, strict=False):
            assert isinstance(block, EncoderBlock | HeadTokensBlock)
            matrices.append(block.attention(entering))  # (B, H, T, T), or of the first tokens alone in the last block
        pool = self.pool(tokens)
        attention = torch.stack([self.pooled(pool, matrix) for matrix in matrices], dim=1)
        means = [matrix.mean(dim=1, keepdim=True) for matrix in matrices]  # (B, 1, T, T)
        start = self.start(pool, attention.shape[-1])
        rollout = 0.5 * self.pooled(pool, means[-1]).squeeze(1) + 0.5 * start
        for mean in reversed(means[:-1]):
            rollout = 0.5 * (rollout.unsqueeze(1) @ mean.squeeze(1)).squeeze(1) + 0.5 * rollout
        return logits, attention, rollout

    def pool(self, tokens: Tensor) -> Tensor | None:
        """Weight of each token in the pooled vector, (B or 1, T), of normed tokens; None for the class token alone."""
        prefix, patches = len(self.config.prefix), self.config.grid[0] * self.config.grid[1]
        match self.config.pool:
            case "cls" | "cls_mean":
                return None
            case "mean_all":
                return torch.full((1, prefix + patches), 1 / (prefix + patches))
            case "mean":
                return F.pad(torch.full((1, patches), 1 / patches), (prefix, 0))
            case "map":
                assert self.network.attn_pool is not None
                weights = self.network.attn_pool.weights(tokens[:, prefix:])  # (B, H, 1, N)
                return F.pad(weights.mean(dim=1).squeeze(1), (prefix, 0))

    @staticmethod
    def pooled(pool: Tensor | None, matrix: Tensor) -> Tensor:
        """The pooled tokens' row of (B, H, T, T), (B, H, T)."""
        if pool is None:
            return matrix[:, :, 0]
        return (pool[:, None, None] @ matrix).squeeze(2)

    @staticmethod
    def start(pool: Tensor | None, tokens: int) -> Tensor:
        """Where the pool reads before any layer, (B or 1, T)."""
        return F.pad(torch.ones(1, 1), (0, tokens - 1)) if pool is None else pool
