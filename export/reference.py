"""The outputs of the plain model, computed explicitly: the graphs are compared with them.

Nothing is shared with the graphs but the weights of the network. Pixels are normalised first, every matrix is kept
whole, and evidence comes from torch's autograd instead of closed forms.
In shapes: B batch, K classes, L layers, T tokens, N patches, H heads, D width.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from app.bundle import TOKENS, array_of
from app.inference.engine import DIRECTION, Outputs
from model.blocks import EncoderBlock, ResPostBlock
from model.checkpoints.checkpoint import Checkpoint
from model.mlp import OF_VECTORS
from model.norm import UnitNorm
from model.unlike import features
from model.vit import VisionTransformer

MATRICES = 2**27  # numbers of all attention of images at once, of which several copies are in memory


class _Layer(NamedTuple):
    block: EncoderBlock
    entering: Tensor  # the residual stream, (B, T, D)
    leaving: Tensor
    of_mlp: Tensor  # what the MLP added to it
    matrix: Tensor  # attention, (B, H, T, T)


def reference(
    checkpoint: Checkpoint,
    pixels: npt.NDArray[np.uint8],
    classes: npt.NDArray[np.int64] | None,
    directions: npt.NDArray[np.floating] | None = None,
) -> Outputs:
    """The outputs of the graphs for uint8 pixels (B, height, width, 3), `classes` (B, K) and `directions` (B, K, F),
    which are zero unless they are given; with the tokens after the final norm and after every layer.

    They have the precision of the model. Without a head there are no classes, and nothing that depends on them.
    """
    config = checkpoint.config
    tokens = len(config.prefix) + math.prod(config.grid)
    at_once = max(1, MATRICES // (config.depth * config.heads * tokens**2))
    parts = []
    for first in range(0, len(pixels), at_once):
        of_part = slice(first, first + at_once)
        asked = None if classes is None else classes[of_part]
        given = None if directions is None else directions[of_part]
        parts.append(_of_images(checkpoint, pixels[of_part], asked, given))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _of_images(
    checkpoint: Checkpoint,
    pixels: npt.NDArray[np.uint8],
    classes: npt.NDArray[np.int64] | None,
    directions: npt.NDArray[np.floating] | None,
) -> Outputs:
    model = checkpoint.model
    images = normalised(pixels, checkpoint)
    dtype = images.dtype
    with torch.no_grad():
        layers = _layers(model, images)
        matrices = torch.stack([layer.matrix for layer in layers], dim=1)  # (B, L, H, T, T)
        tokens = model.normed([layer.leaving for layer in layers])
        pool, embedding = _pool(model, tokens), model.embedding(tokens)
    identity = torch.eye(matrices.shape[-1], dtype=dtype)
    product = identity.expand(len(pixels), -1, -1)
    for of_layer in matrices.mean(dim=2).unbind(1):
        product = (0.5 * of_layer + 0.5 * identity) @ product
    outputs = {
        "embedding": embedding,
        "attention": torch.einsum("bt,blhts->blhs", pool, matrices),
        "rollout": torch.einsum("bt,bts->bs", pool, product),
        "distance": _distance(model, matrices),
        TOKENS: model.norm(layers[-1].leaving).detach(),
        **{array_of(number): layer.leaving for number, layer in enumerate(layers, 1)},
    }
    if checkpoint.known:
        with torch.no_grad():
            of_image = features(model.config, [layer.entering for layer in layers], embedding)
            outputs["unlike"] = checkpoint.known.unlike(of_image.float())
    asked = None if classes is None else torch.from_numpy(classes)
    given = torch.zeros(len(pixels), 1 if asked is None else asked.shape[1], model.config.embedding)
    if directions is not None:
        given = torch.from_numpy(directions)
    evidence, rest = _evidence(model, layers, asked, given.to(dtype))
    outputs |= {"evidence": evidence.sum(3), "evidence_heads": evidence.sum(4), "evidence_rest": rest}
    if asked is not None:
        outputs |= _of_classes(checkpoint, tokens, layers, asked)
    return {name: value.detach().numpy() for name, value in outputs.items()}


def _layers(model: VisionTransformer, images: Tensor) -> list[_Layer]:
    """Every block runs once; running `forward` for each quantity would take most of an export's time."""
    layers, tokens = [], model.embed(images)
    for block in model.blocks:
        assert isinstance(block, EncoderBlock)
        attended, of_mlp = block.branches(tokens)
        leaving = tokens + attended + of_mlp
        layers.append(_Layer(block, tokens, leaving, of_mlp, block.attention(tokens)))
        tokens = leaving
    return layers


def _of_classes(checkpoint: Checkpoint, tokens: Tensor, layers: list[_Layer], classes: Tensor) -> dict[str, Tensor]:
    model = checkpoint.model
    with torch.no_grad():
        outputs = {"logits": model.classify(tokens), "classes": classes}
        if model.config.head_layers == 1 and not model.config.pools_by_attention:
            of_layers = torch.stack([model.classify(model.normed([layer.leaving])) for layer in layers])  # (L, B, C)
            of_layers = of_layers / checkpoint.temperature
            scores = of_layers.softmax(-1) if checkpoint.score == "softmax" else of_layers.sigmoid()
            outputs["lens"] = torch.stack([of_layer.gather(1, classes.clamp(min=0)) for of_layer in scores], dim=1)
    return outputs


def normalised(pixels: npt.NDArray[np.uint8], checkpoint: Checkpoint) -> Tensor:
    """Pixels (B, height, width, 3) to the input of the model, (B, 3, height, width) in its precision."""
    dtype = next(checkpoint.model.parameters()).dtype
    mean, std = (torch.tensor(v, dtype=dtype) for v in (checkpoint.preprocessing.mean, checkpoint.preprocessing.std))
    return ((torch.from_numpy(pixels).to(dtype) / 255 - mean) / std).permute(0, 3, 1, 2)


def _pool(model: VisionTransformer, tokens: Tensor) -> Tensor:
    """Weight of each normed token in the pooled vector, (B, T): 1 for the class token if the head reads that."""
    config = model.config
    weights = torch.zeros(tokens.shape[:2], dtype=tokens.dtype)
    first = len(config.prefix)
    match config.pool:
        case "cls" | "cls_mean":
            weights[:, 0] = 1
        case "mean":
            weights[:, first:] = 1 / (weights.shape[1] - first)
        case "mean_all":
            weights[:] = 1 / weights.shape[1]
        case "map" | "map_all":
            assert model.attn_pool is not None
            first = first if config.pool == "map" else 0
            weights[:, first:] = model.attn_pool.weights(tokens[:, first:]).mean(dim=(1, 2))
    return weights


def _distance(model: VisionTransformer, matrices: Tensor) -> Tensor:
    """(B, L, H)."""
    places = torch.cartesian_prod(*map(torch.arange, model.config.grid)).to(matrices.dtype)  # (N, 2)
    apart = torch.hypot(*(places[:, None] - places).unbind(-1))
    first = len(model.config.prefix)
    return (matrices[..., first:, first:] * apart).sum(-1).mean(-1)


@torch.enable_grad()
def _evidence(
    model: VisionTransformer, layers: list[_Layer], classes: Tensor | None, directions: Tensor
) -> tuple[Tensor, Tensor]:
    """Parts of the logits of `classes` (B, K), or where there are none or DIRECTION, of the inner products of the
    embedding with `directions` (B, K, F): (B, K, L, H, T), and of the MLPs and of what is constant (B, K, 2).

    With the scales of norms held constant, logits are linear in what each value and each MLP adds to the residual
    stream. The part of one is the derivative with respect to a factor of 1 before it, and what is left is constant.
    """
    streams = [layers[0].entering]
    of_mlps = streams[0].new_ones(len(directions), 1).requires_grad_()
    factors = [of_mlps]
    for block, entering, _, of_mlp, matrix in layers:
        value = block.attn.qkv(block.read(entering)).detach().chunk(3, dim=-1)[2]
        value = value.unflatten(-1, (block.attn.heads, -1))  # (B, T, H, d)
        of_values = torch.ones_like(value[..., 0]).requires_grad_()  # (B, T, H)
        mixed = torch.einsum("bhit,bthd->bihd", matrix, value * of_values.unsqueeze(-1)).flatten(2)
        streams.append(streams[-1] + _linear_attention(block, mixed) + of_mlp * of_mlps.unsqueeze(-1))
        factors.append(of_values)
    logits, embedding = _linear_answers(model, streams, of_mlps)
    chosen = (directions @ embedding.unsqueeze(-1)).squeeze(-1)  # (B, K)
    if classes is not None:
        chosen = torch.where(classes == DIRECTION, chosen, logits.gather(1, classes.clamp(min=0)))
    evidence, mlps = [], []
    for of_class in chosen.sum(0):  # an image has no part in the numbers of another
        by_mlps, *by_value = torch.autograd.grad(of_class, factors, retain_graph=True)
        evidence.append(torch.stack(by_value, dim=1).transpose(2, 3))  # (B, L, H, T)
        mlps.append(by_mlps)
    parts, of_all_mlps = torch.stack(evidence, dim=1), torch.cat(mlps, dim=1)
    constants = chosen - parts.sum((2, 3, 4)) - of_all_mlps
    return parts, torch.stack([of_all_mlps, constants], dim=-1)


def _still(norm: nn.Module, x: Tensor) -> Tensor:
    """The output of `norm` with a constant scale, that of x."""
    if isinstance(norm, nn.Identity):
        return x
    assert isinstance(norm, nn.LayerNorm | nn.RMSNorm | UnitNorm)
    if isinstance(norm, UnitNorm):
        return x / x.detach().norm(dim=-1, keepdim=True)
    if isinstance(norm, nn.LayerNorm):
        x = x - x.mean(-1, keepdim=True)
    scale = (x.detach().square().mean(-1, keepdim=True) + (norm.eps or 0)).sqrt()
    out: Tensor = x / scale * norm.weight
    return out + norm.bias if isinstance(norm, nn.LayerNorm) else out


def _linear_attention(block: EncoderBlock, mixed: Tensor) -> Tensor:
    """The output of a block's attention, from the values (B, T, H * d) weighted by attention."""
    projected = block.attn.proj(_still(block.attn.norm, mixed))
    return _still(block.norm1, projected) if isinstance(block, ResPostBlock) else block.ls1(projected)


def _linear_answers(model: VisionTransformer, streams: list[Tensor], of_mlp: Tensor) -> tuple[Tensor, Tensor]:
    """Logits (B, C) and the embedding (B, F), linear in the streams and in the factor `of_mlp` (B, 1) before an
    attention pool's MLP.
    """
    tokens = torch.cat([_still(model.norm, s) for s in streams[-model.config.head_layers :]], dim=-1)
    if model.attn_pool is None:
        vector = model.pooled(tokens)
    else:
        pool, first = model.attn_pool, len(model.config.prefix) if model.config.pool == "map" else 0
        pooled_tokens = tokens[:, first:]
        values = pool.kv(pooled_tokens).chunk(2, dim=-1)[1].unflatten(-1, (pool.heads, -1))  # (B, N, H, d)
        weights = pool.weights(pooled_tokens).squeeze(2).detach()  # (B, H, N)
        pooled = pool.proj(torch.einsum("bhn,bnhd->bhd", weights, values).flatten(1))
        vector = pooled + of_mlp * pool.mlp(pool.norm(pooled)).detach()
    vector = _still(model.fc_norm, vector)
    if model.pre_logits is not None:
        vector = model.pre_logits(vector)
        activation = OF_VECTORS[model.config.representation]
        at_zero = activation(torch.zeros_like(vector))
        vector = vector * ((activation(vector) - at_zero) / vector).detach() + at_zero
    logits: Tensor = model.head(_still(model.head_norm, vector))
    if model.head_dist is None:
        return logits, vector
    return (logits + model.head_dist(tokens[:, 1])) / 2, (vector + tokens[:, 1]) / 2
