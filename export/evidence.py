"""Evidence: the direct contribution of every token, in every layer, to the logits of some classes, or to the inner
products of the embedding with some directions.

The residual stream is a sum: the embedding, and the outputs of each block's attention and MLP. If the scale of every
norm after it is held at its actual value (export/readout.py), a logit is linear in that sum, and attention is linear in
its values. A logit is thus a sum over layers, heads and tokens, plus the part of the MLPs, plus constants. This is the
direct effect: what a later layer computes from an earlier one counts for the later layer. For a class token with a
linear head it is the decomposition of CLIP-PRS (arXiv 2310.05916, section 3.2), known as direct logit attribution.

In shapes: B batch, K classes, L layers, T tokens, H heads, D width, d width of a head; R readers of n tokens each.
"""

from dataclasses import replace
from functools import reduce
from operator import add
from typing import NamedTuple

import torch
from torch import Tensor, nn

from app.inference.engine import DIRECTION
from export.readout import Readout
from export.rewrite import FusedAttention, Linear
from model.blocks import EncoderBlock, ResPostBlock
from model.mlp import OF_VECTORS
from model.pooling import AttentionPool
from model.vit import VisionTransformer


class LayerFacts(NamedTuple):
    """Tensors that one block computed. Q is T, or the number of tokens that the last block computes."""

    block: EncoderBlock
    read: Tensor  # (B, T, D): input of attention, in the block's precision
    matrix: Tensor  # (B, H, Q, T): attention after softmax
    transformed: Tensor  # (B, Q, D): output of the MLP


class Evidence(NamedTuple):
    """Signed parts of what is asked: each is the sum of its `tokens` and of its `rest`."""

    tokens: Tensor  # (B, K, L, T)
    heads: Tensor  # (B, K, L, H): the same, summed over tokens instead of heads
    rest: Tensor  # (B, K, 2): of the MLPs; of all constants, which include the embedding of the tokens that are read


class Reading(NamedTuple):
    """A readout, the tokens of the residual stream that it reads, and the number of blocks before them."""

    readout: Readout
    tokens: slice
    layer: int


class Asked(NamedTuple):
    """What to explain: logits, or inner products of the embedding, which is what the head reads."""

    classes: Tensor | None  # (B, K), DIRECTION where `directions` has what is asked; None without a head
    directions: Tensor  # (B, K, F)


def evidence(network: VisionTransformer, asked: Asked, streams: list[Tensor], layers: list[LayerFacts]) -> Evidence:
    """Parts of what is `asked`, from the L + 1 residual streams (B, T, D) and the facts of L blocks."""
    readings, mlps = _readings(network, asked, streams)
    constants = torch.zeros_like(mlps)
    for readout, tokens, depth in readings:
        passed = [layer.transformed[:, tokens] for layer in layers[:depth]]
        mlps = mlps + readout.of(reduce(add, passed))
        constants = constants + readout.constant + readout.of(streams[0][:, tokens])
    per_token, per_head = [], []
    for index, layer in enumerate(layers):
        parts = [_attended(layer, reading) for reading in readings if index < reading.layer]
        of_tokens, of_heads, biases = (reduce(add, part) for part in zip(*parts, strict=True))
        per_token.append(of_tokens)
        per_head.append(of_heads)
        constants = constants + biases
    return Evidence(torch.stack(per_token, 2), torch.stack(per_head, 2), torch.stack([mlps, constants], -1))


def _readings(network: VisionTransformer, asked: Asked, streams: list[Tensor]) -> tuple[list[Reading], Tensor]:
    """The readings that give what is asked, and the part (B, K) of an attention pool's own MLP."""
    config, depth = network.config, len(streams) - 1
    normed = network.normed(streams)  # (B, T, D), or the last head_layers side by side
    vector = network.pooled(normed)  # (B, features)
    readout = _asked(network.head, network.head_norm, asked, network.read(normed))
    if network.pre_logits is not None:
        if config.representation != "linear":
            activation = OF_VECTORS[config.representation]
            readout = readout.before_activation(activation, network.pre_logits(network.fc_norm(vector)))
        readout = readout.before(network.pre_logits, vector)
    readout = readout.before(network.fc_norm, vector.unsqueeze(1))
    mlps = torch.zeros_like(readout.constant)
    first, patches = slice(0, 1), slice(len(config.prefix), None)
    match config.pool:
        case "map" | "map_all":
            assert network.attn_pool is not None
            tokens = patches if config.pool == "map" else slice(None)
            readout, mlps = _attention_pool(network.attn_pool, readout, normed[:, tokens])
            readings = [Reading(readout, tokens, depth)]
        case "mean":
            readings = [Reading(_mean(readout, normed[:, patches]), patches, depth)]
        case "mean_all":
            readings = [Reading(_mean(readout, normed), slice(None), depth)]
        case "cls" | "cls_mean":
            parts = readout.direction.split(config.width, dim=-1)
            alone = replace(readout, constant=torch.zeros_like(readout.constant))
            start = depth - config.head_layers + 1
            readings = [
                Reading(replace(alone, direction=part), first, start + i)
                for i, part in enumerate(parts[: config.head_layers])
            ]
            if config.pool == "cls_mean":
                of_patches = replace(alone, direction=parts[-1])
                readings.append(Reading(_mean(of_patches, normed[:, patches]), patches, depth))
            readings[0] = readings[0]._replace(readout=replace(readings[0].readout, constant=readout.constant))
    if network.head_dist is not None:
        readings.append(Reading(_asked(network.head_dist, nn.Identity(), asked, normed[:, 1]), slice(1, 2), depth))
        readings = [r._replace(readout=r.readout.scaled(0.5)) for r in readings]
    return [
        Reading(readout.before(network.norm, streams[layer][:, tokens]), tokens, layer)
        for readout, tokens, layer in readings
    ], mlps


def _asked(head: nn.Module, head_norm: nn.Module, asked: Asked, read: Tensor) -> Readout:
    """What is asked as one reader of `read` (B, F). A direction is not seen by the norm that a cosine head has."""
    ones, directions = torch.ones(1, 1, 1), asked.directions.unsqueeze(1)
    if asked.classes is None:
        return Readout(direction=directions, weights=ones, constant=torch.zeros(asked.directions.shape[:2]))
    readout = _classifier(head, asked.classes.clamp(min=0)).before(head_norm, read.unsqueeze(1))
    of_class = (
        readout.direction if isinstance(head_norm, nn.Identity) else readout.direction * readout.weights.unsqueeze(-1)
    )
    given = asked.classes == DIRECTION
    direction = torch.where(given[:, None, :, None], directions, of_class)
    return Readout(direction=direction, weights=ones, constant=torch.where(given, 0.0, readout.constant))


def _classifier(head: nn.Module, classes: Tensor) -> Readout:
    """The logits of `classes` (B, K) from a linear head, as one reader of one vector."""
    assert isinstance(head, Linear)
    # Indexing with brackets would become GatherND, which ONNX Runtime before 1.32 replays wrongly in CUDA graphs.
    columns = head.weight.index_select(1, classes.flatten())  # (features, B * K)
    direction = columns.t().unflatten(0, classes.shape).unsqueeze(1)  # (B, 1, K, features)
    constant = torch.zeros(classes.shape)
    if head.bias is not None:
        constant = head.bias.index_select(0, classes.flatten()).unflatten(0, classes.shape)
    return Readout(direction=direction, weights=torch.ones(1, 1, 1), constant=constant)


def _mean(readout: Readout, tokens: Tensor) -> Readout:
    """The readout before the mean over tokens (B, n, D)."""
    count = tokens.shape[1]
    return replace(readout, weights=readout.weights.expand(-1, -1, count) / count)


def _attention_pool(pool: AttentionPool, readout: Readout, tokens: Tensor) -> tuple[Readout, Tensor]:
    """The readout before the pool, with a reader for each of its heads; and the part of its MLP, (B, K)."""
    pooled = pool.proj(pool.mixed(tokens))  # (B, D)
    mlps = readout.of(pool.mlp(pool.norm(pooled)).unsqueeze(1))
    readout = readout.before(pool.proj, pooled.unsqueeze(1))
    kv = pool.get_submodule("kv")
    assert isinstance(kv, Linear)
    assert kv.bias is not None
    weight = kv.weight.chunk(2, dim=1)[1].unflatten(1, (pool.heads, -1))  # (D, heads of the pool, d): of the values
    by_head = readout.direction.squeeze(1).unflatten(-1, (pool.heads, -1)).transpose(1, 2)  # (B, R, K, d)
    direction = by_head @ weight.permute(1, 2, 0)  # (B, R, K, D)
    weights = pool.weights(tokens).squeeze(2) * readout.weights  # (B, R, N), each row sums to the reader's weight
    bias = kv.bias.chunk(2)[1].unflatten(0, (pool.heads, -1)).unsqueeze(-1)  # (R, d, 1)
    constant = readout.constant + ((by_head @ bias).squeeze(-1) * weights.sum(-1, keepdim=True)).sum(1)
    return Readout(direction=direction, weights=weights, constant=constant), mlps


def _attended(layer: LayerFacts, reading: Reading) -> tuple[Tensor, Tensor, Tensor]:
    """Parts that a block's attention adds to a reading: by token (B, K, T), by head (B, K, H), by biases (B, K)."""
    block, (readout, tokens, _) = layer.block, reading
    attention = block.get_submodule("attn")
    assert isinstance(attention, FusedAttention)
    readout = replace(readout, constant=torch.zeros_like(readout.constant))
    if isinstance(block, ResPostBlock):
        readout = readout.before(block.norm1, attention(layer.read)[:, tokens].float())
    else:
        readout = readout.before(block.ls1, layer.read)
    readout = readout.before(attention.proj, layer.read)
    if not isinstance(attention.norm, nn.Identity):
        readout = readout.before(attention.norm, attention.mixed(layer.read)[:, tokens].float())
    heads = attention.heads
    rows = readout.weights.unsqueeze(1) @ layer.matrix[:, :, tokens]  # (B, H, R, T)
    value = attention.v(layer.read).float().unflatten(-1, (heads, -1)).transpose(1, 2)  # (B, H, T, d)
    direction = readout.direction.unflatten(-1, (heads, -1)).permute(0, 3, 4, 1, 2)  # (B, H, d, R, K)
    of_values = (value @ direction.flatten(3)).unflatten(-1, direction.shape[-2:])  # (B, H, T, R, K)
    by_reader = of_values * rows.transpose(-1, -2).unsqueeze(-1)
    parts = by_reader.squeeze(3) if by_reader.shape[3] == 1 else by_reader.sum(3)  # (B, H, T, K)
    return parts.sum(1).transpose(1, 2), parts.sum(2).transpose(1, 2), readout.constant
