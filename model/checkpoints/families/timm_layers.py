"""Layers that timm joins, splits or leaves out where model/vit.py does not. Each function changes `state` in place."""

import torch
from torch import Tensor

from model.checkpoints.tensors import State, join_blocks
from model.config import ViTConfig


def conv_patches(state: State, config: ViTConfig) -> None:
    """Old files hold a matrix: timm's patch embedding was not a convolution yet."""
    weight = state["patch_embed.proj.weight"]
    size = config.patch_size // config.stem_stride
    if weight.ndim == 2:
        state["patch_embed.proj.weight"] = weight.unflatten(1, (-1, size, size))


def fused_layers(state: State, config: ViTConfig) -> None:
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
    by_head: Tensor = rows.unflatten(0, (shared, width))
    return by_head.repeat_interleave(heads // shared, 0).flatten(0, 1)


def absent_layers(state: State, config: ViTConfig) -> None:
    """Biases that no block has: those of timm's proj_bias=False (AIMv2), zeros here. A LayerScale that scales attention
    alone (Sapiens2): ones here for the MLP."""
    blocks = [f"blocks.{i}." for i in range(config.depth)]
    if config.layer_scale and config.block == "pre_norm" and not any(f"{block}ls2.gamma" in state for block in blocks):
        for block in blocks:
            if f"{block}ls1.gamma" in state:
                state[f"{block}ls2.gamma"] = torch.ones_like(state[f"{block}ls1.gamma"])
    for layer in ("attn.proj", "mlp.fc1", "mlp.fc2"):
        if not any(key.endswith(f"{layer}.bias") for key in state):
            for block in blocks:
                weight = state.get(f"{block}{layer}.weight")
                if weight is not None:
                    state[f"{block}{layer}.bias"] = weight.new_zeros(len(weight))


def classes(state: State, config: ViTConfig) -> None:
    """The rows of the head that are classes: timm's label_offset is the number of rows before them. A projection to
    embeddings is no head.
    """
    for key in ("head.weight", "head.bias", "head_dist.weight", "head_dist.bias"):
        if key in state and config.representation_size:
            state[key.replace("head", "pre_logits")] = state.pop(key)
        elif key in state:
            state[key] = state[key][-config.num_classes :]
