"""What the graphs of a bundle compute, as a torch module over the rewritten network.

In shapes: B batch, N patches, T tokens, H heads, L layers.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from app.bundle import TOKENS, Precision, array_of
from app.inference.engine import MOST_LIKELY_CLASS
from export.evidence import Asked, LayerFacts, evidence
from export.precision import lower
from export.rewrite import FusedAttention, HeadTokensBlock, rewrite
from model.blocks import EncoderBlock
from model.checkpoints.checkpoint import Checkpoint
from model.unlike import features

MOST_LIKELY = 5  # classes whose evidence is kept
MAPS = ("attention", "rollout", "distance")
EVIDENCE = ("evidence", "evidence_rest", "evidence_heads")


class ExplainGraph(nn.Module):
    """images uint8 (B, height, width, 3), asked int64 (B, K), directions float (B, K, F) -> the answers and every map,
    in one forward pass.

    The answers are logits (B, classes), embedding (B, F): what the head reads, which costs nothing, and, of a model
    that knows its images, unlike (B, 1): model/unlike.py. A bundle's lean graph is the part of this one that gives
    them. Without a head there are no logits, and nothing `asked`: what is explained is one direction, so K is 1.

    Beside these there are the `arrays` of tokens, which the explaining graph of a bundle leaves out, and its graph of
    tokens gives with the answers: tokens (B, T, D) after the final norm, and layer_k (B, T, D), the residual stream
    after so many blocks.

    attention (B, L, H, T): the row of the class token after softmax; without a class token, the mean of the rows of the
    pooled tokens, with the weights of the pool.
    rollout (B, T): the same row of the product over all layers of (mean over heads + identity) / 2
    (Abnar & Zuidema 2020, arXiv 2005.00928), computed as a row from the last layer to the first.
    classes (B, K) int64: those asked for, with the k-th most likely class in the place of MOST_LIKELY_CLASS. Where it
    is DIRECTION, the evidence is for the inner product of the embedding with the k-th direction.
    evidence (B, K, L, T), evidence_rest (B, K, 2), evidence_heads (B, K, L, H): see export/evidence.py.
    distance (B, L, H): the mean over patches of the distance to the patches that each attends to, weighted by
    attention, in patches (paper, Fig. 7 right). Attention to the tokens before the patches counts as distance 0, as in
    Keras' `probing-vits`.
    lens (B, L, K): the scores of these classes, with the `temperature`, when the head reads each layer's tokens. It
    exists if the head reads one layer, but not with an attention pool, which would have to run once for each layer.
    """

    def __init__(
        self, checkpoint: Checkpoint, precision: Precision, *, layers: Sequence[int] = (), learning: bool = False
    ) -> None:
        """`layers` are those whose tokens are wanted, from 1. While `learning` of images, `unlike` is their features,
        (B, F).
        """
        super().__init__()
        self.config = checkpoint.model.config
        self.network = rewrite(checkpoint.model, checkpoint.preprocessing)
        lower(self.network, precision)
        self.dtype = torch.float16 if precision == "fp16" else torch.float32  # of the residual stream
        self.score, self.temperature = checkpoint.score, checkpoint.temperature
        self.unlike = nn.Identity() if learning else checkpoint.known.unlike if checkpoint.known else None
        self.answers: tuple[str, ...] = ("logits", "embedding") if self.config.num_classes else ("embedding",)
        self.answers += ("unlike",) if self.unlike else ()
        self.layers = tuple(layers)
        self.arrays = (TOKENS, *map(array_of, layers))
        self.outputs: tuple[str, ...] = (*self.answers, *MAPS)
        self.explained = min(MOST_LIKELY, self.config.num_classes) or 1  # K
        if not self.config.num_classes:
            self.outputs += EVIDENCE
        else:
            lens = ("lens",) if self.config.head_layers == 1 and not self.config.pools_by_attention else ()
            self.outputs += ("classes", *EVIDENCE, *lens)
        prefix, (rows, columns) = len(self.config.prefix), self.config.grid
        y, x = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).float().unbind(1)  # each (N,)
        apart = torch.hypot(y[:, None] - y, x[:, None] - x)
        distances = F.pad(apart / (rows * columns), (prefix, 0, prefix, 0))
        self.distances = nn.Buffer(distances.reshape(-1, 1))  # (T * T, 1): summed, the mean over the patches

    def example(self, images: int) -> dict[str, Tensor]:
        """Inputs for so many images, of which nothing but the most likely classes are asked."""
        (height, width), (rows, features) = self.config.image_size, (self.explained, self.config.embedding)
        asked = {"asked": torch.full((images, rows), MOST_LIKELY_CLASS)} if self.config.num_classes else {}
        pixels = torch.zeros(images, height, width, 3, dtype=torch.uint8)
        return {"images": pixels, **asked, "directions": torch.zeros(images, rows, features)}

    def forward(
        self, images: Tensor, asked: Tensor | None = None, directions: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """`outputs`, then `arrays`."""
        if directions is None:
            directions = torch.zeros(len(images), self.explained, self.config.embedding)
        network = self.network
        streams, layers, whole = self._run(images)
        tokens = network.normed(streams)
        embedding = network.embedding(tokens)
        answers: tuple[Tensor, ...] = (network.classify(tokens), embedding) if self.config.num_classes else (embedding,)
        if self.unlike:
            answers += (self.unlike(features(self.config, streams[:-1], embedding)),)
        pool = self.pool(tokens)
        if pool is None:
            rows = [layer.matrix[:, :, 0] for layer in layers]  # each (B, H, T)
        else:
            rows = [(pool[:, None, None] @ layer.matrix).squeeze(2) for layer in layers]
        attention = torch.stack(rows, dim=1)
        rollout = F.pad(torch.ones(1, 1), (0, attention.shape[-1] - 1)) if pool is None else pool
        for layer in reversed(layers):  # on a GPU, the mean of matrices takes four times as long as that of their rows
            by_head = rollout[:, None, None] @ layer.matrix  # (B, H, 1, T)
            rollout = 0.5 * by_head.mean(dim=1).squeeze(1) + 0.5 * rollout
        distance = torch.stack([(layer.matrix.flatten(2) @ self.distances).squeeze(-1) for layer in layers], dim=1)
        out = (*answers, attention, rollout, distance)
        arrays = [network.norm(whole), *([*streams[:-1], whole][layer] for layer in self.layers)]
        classes = None
        if self.config.num_classes:
            classes = answers[0].topk(self.explained).indices
            if asked is not None:
                classes = torch.where(asked == MOST_LIKELY_CLASS, classes, asked)
            out += (classes,)
        parts = evidence(network, Asked(classes, directions), streams, layers)
        out += (parts.tokens, parts.rest, parts.heads)
        if classes is not None and "lens" in self.outputs:
            out += (self.lens(streams, classes.clamp(min=0)),)
        return (*out, *arrays)

    def _run(self, images: Tensor) -> tuple[list[Tensor], list[LayerFacts], Tensor]:
        """The residual stream before the first block and after each in float32, the facts of each block, and all tokens
        of the last stream.
        """
        streams, layers = [self.network.embed(images).to(self.dtype)], []
        for block in self.network.blocks:
            assert isinstance(block, EncoderBlock)
            attention = block.get_submodule("attn")  # `block.attn` is declared as it was before the rewrite
            assert isinstance(attention, FusedAttention)
            entering = streams[-1]
            read = block.read(entering)
            attended, transformed = block.branches(entering)
            layers.append(LayerFacts(block, read, attention.weights(read), transformed.float()))
            streams.append(entering[:, : transformed.shape[1]] + attended + transformed)
        last, whole = self.network.blocks[-1], streams[-1]
        if isinstance(last, HeadTokensBlock):  # what it has computed stays as it is: the class token is the embedding
            whole = torch.cat([whole, last.whole(streams[-2])[:, last.tokens :]], dim=1)
        return [stream.float() for stream in streams], layers, whole.float()

    def lens(self, streams: list[Tensor], classes: Tensor) -> Tensor:
        """Scores (B, L, K) of `classes` (B, K) when the head reads each layer's tokens."""
        read = torch.stack([self._condensed(tokens) for tokens in streams[1:]], dim=1)  # (B, L, few tokens, D)
        logits = self.network.classify(read.flatten(0, 1)).unflatten(0, read.shape[:2])  # (B, L, C)
        if self.temperature != 1:
            logits = logits / self.temperature
        scores: Tensor = logits.softmax(-1) if self.score == "softmax" else logits.sigmoid()
        return scores.gather(-1, classes.unsqueeze(1).expand(-1, read.shape[1], -1))

    def _condensed(self, stream: Tensor) -> Tensor:
        """The normed tokens of one layer, reduced to those that the head needs for the same logits."""
        config, prefix = self.config, len(self.config.prefix)
        match config.pool:
            case "cls":
                return self.network.normed([stream[:, : 2 if config.distillation_head else 1]])
            case "mean_all":
                return self.network.normed([stream]).mean(1, keepdim=True)
            case _:
                tokens = self.network.normed([stream])
                return torch.cat([tokens[:, :prefix], tokens[:, prefix:].mean(1, keepdim=True)], dim=1)

    def pool(self, tokens: Tensor) -> Tensor | None:
        """Weight of each normed token in the pooled vector, (B or 1, T); None if only the class token is read."""
        prefix, patches = len(self.config.prefix), self.config.grid[0] * self.config.grid[1]
        match self.config.pool:
            case "cls" | "cls_mean":
                return None
            case "mean_all":
                return torch.full((1, prefix + patches), 1 / (prefix + patches))
            case "mean":
                return F.pad(torch.full((1, patches), 1 / patches), (prefix, 0))
            case "map" | "map_all":
                assert self.network.attn_pool is not None
                first = prefix if self.config.pool == "map" else 0
                weights = self.network.attn_pool.weights(tokens[:, first:])  # (B, H, 1, N or T)
                return F.pad(weights.mean(dim=1).squeeze(1), (first, 0))
