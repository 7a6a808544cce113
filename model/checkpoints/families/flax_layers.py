"""Layers of Google's flax trees and their names in our network. In flax the first dimensions of a kernel are inputs."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

Read = Callable[[str], Tensor]  # a leaf by its path
Layer = tuple[
    str, Callable[..., dict[str, Tensor]], tuple[str, ...]
]  # our name, the conversion, the path or paths in the tree


def arranged(layers: Iterable[Layer], read: Read, prefix: str = "") -> dict[str, Tensor]:
    return {
        f"{prefix}{name}.{kind}": tensor
        for name, transform, paths in layers
        for kind, tensor in transform(read, *paths).items()
    }


def conv(read: Read, path: str) -> dict[str, Tensor]:
    """(height, width, in, out) to (out, in, height, width)."""
    return {**std_conv(read, path), "bias": read(f"{path}/bias")}


def std_conv(read: Read, path: str) -> dict[str, Tensor]:
    return {"weight": read(f"{path}/kernel").permute(3, 2, 0, 1)}


def norm(read: Read, path: str) -> dict[str, Tensor]:
    """A group norm can be (1, 1, 1, C)."""
    return {"weight": read(f"{path}/scale").flatten(), "bias": read(f"{path}/bias").flatten()}


def dense(read: Read, *paths: str) -> dict[str, Tensor]:
    """(inputs..., outputs...) to (outputs, inputs). Either side can be split into heads; several layers are stacked."""
    biases = [read(f"{path}/bias").flatten() for path in paths]
    weights = [read(f"{path}/kernel").reshape(-1, len(bias)).T for path, bias in zip(paths, biases, strict=True)]
    return {"weight": torch.cat(weights), "bias": torch.cat(biases)}


def attention(path: str) -> tuple[tuple[str, ...], str]:
    return tuple(f"{path}/{name}" for name in ("query", "key", "value")), f"{path}/out"


class BlockNames(NamedTuple):
    """Names of a block's modules. flax numbers them: before linen with one count, since then each kind by itself."""

    attention: str
    norm2: str
    mlp: str


OLD = BlockNames("MultiHeadDotProductAttention_1", "LayerNorm_2", "MlpBlock_3")
LINEN = BlockNames("MultiHeadDotProductAttention_0", "LayerNorm_1", "MlpBlock_0")


def block_layers(names: BlockNames) -> tuple[Layer, ...]:
    qkv, out = attention(names.attention)
    return (
        ("norm1", norm, ("LayerNorm_0",)),
        ("attn.qkv", dense, qkv),
        ("attn.proj", dense, (out,)),
        ("norm2", norm, (names.norm2,)),
        ("mlp.fc1", dense, (f"{names.mlp}/Dense_0",)),
        ("mlp.fc2", dense, (f"{names.mlp}/Dense_1",)),
    )


TRUNK: tuple[Layer, ...] = (
    ("patch_embed.proj", conv, ("embedding",)),
    ("norm", norm, ("Transformer/encoder_norm",)),
    ("head", dense, ("head",)),
)
PRE_LOGITS: tuple[Layer, ...] = (("pre_logits", dense, ("pre_logits",)),)


def map_head_layers(path: str) -> tuple[Layer, ...]:
    (query, key, value), out = attention(f"{path}MultiHeadDotProductAttention_0")
    return (
        ("attn_pool.q", dense, (query,)),
        ("attn_pool.kv", dense, (key, value)),
        ("attn_pool.proj", dense, (out,)),
        ("attn_pool.norm", norm, (f"{path}LayerNorm_0",)),
        ("attn_pool.mlp.fc1", dense, (f"{path}MlpBlock_0/Dense_0",)),
        ("attn_pool.mlp.fc2", dense, (f"{path}MlpBlock_0/Dense_1",)),
    )


def stem_layers(units: tuple[int, ...]) -> Iterator[Layer]:
    """The ResNet of a hybrid; Google counts its stages and units from 1."""
    yield "stem.conv", std_conv, ("conv_root",)
    yield "stem.norm", norm, ("gn_root",)
    for stage, count in enumerate(units):
        for unit in range(count):
            ours, theirs = f"stages.{stage}.blocks.{unit}", f"block{stage + 1}/unit{unit + 1}"
            for i in (1, 2, 3):
                yield f"{ours}.conv{i}", std_conv, (f"{theirs}/conv{i}",)
                yield f"{ours}.norm{i}", norm, (f"{theirs}/gn{i}",)
            if unit == 0:
                yield f"{ours}.downsample.conv", std_conv, (f"{theirs}/conv_proj",)
                yield f"{ours}.downsample.norm", norm, (f"{theirs}/gn_proj",)
