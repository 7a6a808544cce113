"""Layers that timm joins, splits or leaves out where model/vit.py does not, and positions as timm saves them: tables of
any size with slots for the prefix, several forms of relative ones, and frequencies of rotary ones.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError, Description
from model.checkpoints.families import dinov3
from model.checkpoints.families.timm_architectures import Architecture
from model.checkpoints.source import Source
from model.checkpoints.tensors import RELATIVE, State, fill_biases, join_blocks, share_relative_table, square_grid
from model.config import ViTConfig
from model.positions import Grid


def check_layers(source: Source, architecture: Architecture) -> None:
    """Raises CheckpointError for layers that a file has and its arguments do not, or the other way round, where
    `tensors` would fill them in.
    """
    name, arguments = architecture.name, architecture.arguments
    parallel = arguments.get("block_fn") == "ParallelScalingBlock"
    for layer in ("attn.proj", *(() if parallel else ("mlp.fc1",)), "mlp.fc2"):  # it is part of in_proj there
        has = any(key.endswith(f"{layer}.bias") for key in source.names)
        if has != arguments.get("proj_bias", True):
            raise CheckpointError(f"{name} has proj_bias={not has}, the file has {layer} {_with(has)} a bias")
    scales = [any(key.endswith(f".{scale}.gamma") for key in source.names) for scale in ("ls1", "ls2")]
    if scales[0] and not parallel and scales[1] == arguments.get("attn_only_layer_scale", False):
        raise CheckpointError(
            f"{name} has attn_only_layer_scale={scales[1]}, the file has MLPs {_with(scales[1])} a LayerScale"
        )


def _with(has: bool) -> str:
    return "with" if has else "without"


def tensors(state: State, description: Description) -> State:
    config = description.config
    dinov3.convert(state, config)
    _conv_patches(state, config)
    _fused_layers(state, config)
    _absent_layers(state, config)
    _relative_mlps(state, config)
    share_relative_table(state, config)
    if "rope.freqs" in state:  # frequencies of all blocks, (2, L, H, d/2)
        for i, freqs in enumerate(state.pop("rope.freqs").unbind(1)):
            state[f"blocks.{i}.attn.rope.freqs"] = freqs
    _classes(state, config)
    return state


def _conv_patches(state: State, config: ViTConfig) -> None:
    """Old files hold a matrix: timm's patch embedding was not a convolution yet."""
    weight = state["patch_embed.proj.weight"]
    size = config.patch_size // config.stem_stride
    if weight.ndim == 2:
        state["patch_embed.proj.weight"] = weight.unflatten(1, (-1, size, size))


def _fused_layers(state: State, config: ViTConfig) -> None:
    """Layers that timm joins or splits: in_proj, EVA's projections, BEiT's biases, and both parts of SwiGLU.

    Where several heads share keys and values (grouped-query attention, arXiv 2305.13245), each gets a copy.
    """
    for block in (f"blocks.{i}." for i in range(config.depth)):
        for kind in ("weight", "bias"):
            if f"{block}in_proj.{kind}" in state:
                joined = state.pop(f"{block}in_proj.{kind}").tensor_split([config.mlp_dim])
                state[f"{block}mlp.fc1.{kind}"], state[f"{block}attn.qkv.{kind}"] = joined
            for name in (f"{block}attn.k.{kind}", f"{block}attn.v.{kind}"):
                if name in state:
                    state[name] = _for_every_head(state[name], config.attn_width // config.heads, config.heads)
    join_blocks(state, config)


def _for_every_head(rows: Tensor, width: int, heads: int) -> Tensor:
    """Rows of a projection to heads of `width` channels, repeated until there are so many heads."""
    shared, rest = divmod(len(rows), width)
    if rest or not shared or heads % shared:
        return rows
    return rows.unflatten(0, (shared, width)).repeat_interleave(heads // shared, 0).flatten(0, 1)


def _absent_layers(state: State, config: ViTConfig) -> None:
    """Biases that no block has: those of timm's proj_bias=False (AIMv2), zeros here. A LayerScale that scales attention
    alone (Sapiens2): ones here for the MLP."""
    blocks = [f"blocks.{i}." for i in range(config.depth)]
    if config.layer_scale and config.block == "pre_norm" and not any(f"{block}ls2.gamma" in state for block in blocks):
        for block in blocks:
            if f"{block}ls1.gamma" in state:
                state[f"{block}ls2.gamma"] = torch.ones_like(state[f"{block}ls1.gamma"])
    fill_biases(state, config, ["attn.proj", "mlp.fc1", "mlp.fc2"])


def _classes(state: State, config: ViTConfig) -> None:
    """The rows of the head that are classes: timm's label_offset is the number of rows before them. A projection to
    embeddings is not a head.
    """
    for key in ("head.weight", "head.bias", "head_dist.weight", "head_dist.bias"):
        if key in state and config.representation_size and not config.num_classes:
            state[key.replace("head", "pre_logits")] = state.pop(key)
        elif key in state:
            state[key] = state[key][-config.num_classes :]


def slots(architecture: Architecture, config: ViTConfig) -> int:
    """Rows of a table of positions that are for tokens before the patches: for all of them, or for none."""
    return 0 if architecture.arguments.get("no_embed_class") else len(config.prefix)


def grid_of_file(source: Source, architecture: Architecture, config: ViTConfig) -> Grid | None:
    """Rows and columns of patches in the tables of a file; None if it has no table."""
    if "pos_embed" in source:
        return square_grid(source.shape("pos_embed")[1] - slots(architecture, config), [0], usual=config.grid)
    tables = [key for key in source.names if key.endswith(RELATIVE)]
    return _relative_grid(source.shape(tables[0])[0], config) if tables else None


def _relative_mlps(state: State, config: ViTConfig) -> None:
    """Put the biases that an MLP computes for every offset, (offsets, H), in its place: of one block or of all.

    timm's RelPosMlp (layers/pos_embed_rel.py, mode "cr"). The class token, where there is one, has no bias.
    """
    if not config.relative_bias:
        return
    rows, columns = (torch.arange(1 - side, side, dtype=torch.float32) for side in config.grid)
    offsets = torch.cartesian_prod(rows, columns)
    logarithms = offsets.sign() * (1 + offsets.abs()).log()
    for first in [key for key in state if key.endswith("rel_pos.mlp.fc1.weight")]:
        mlp = first.removesuffix("fc1.weight")
        parts = [f"{mlp}{layer}.{kind}" for layer in ("fc1", "fc2") for kind in ("weight", "bias")]
        if absent := [name for name in parts if name not in state]:
            raise CheckpointError(f"missing: {', '.join(absent)}")
        *fc1, weight, bias = (state.pop(name) for name in parts)
        table = F.linear(F.relu(F.linear(logarithms, *fc1)), weight, bias)
        state[mlp.removesuffix("rel_pos.mlp.") + RELATIVE] = F.pad(table, (0, 0, 0, 3 * config.class_token))


def _relative_grid(entries: int, config: ViTConfig) -> Grid:
    rows, columns = config.grid
    offsets = entries - 3 * config.class_token
    if offsets == (2 * rows - 1) * (2 * columns - 1):
        return config.grid
    side = math.isqrt(max(offsets, 0))
    if side**2 != offsets or side % 2 == 0:
        raise CheckpointError(f"{RELATIVE} has {entries} entries, which does not fit a square of offsets")
    return (side + 1) // 2, (side + 1) // 2
