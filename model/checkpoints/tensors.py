"""Steps that several families share on the way from a file's tensors to the network's, and the last, which is strict.

`state` has our names, and each step changes it in place.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import isqrt, prod

import torch
from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError, Origin, first_few
from model.checkpoints.computed import refusal
from model.checkpoints.facts import Facts
from model.checkpoints.networks import is_unread
from model.checkpoints.source import Source
from model.config import ViTConfig
from model.positions import Grid, resize_tables
from model.vit import VisionTransformer

State = dict[str, Tensor]

RELATIVE = "relative_position_bias_table"
PREFIX = ("cls_token", "dist_token", "reg_token")
NOTHING = r"(?!)"  # a pattern that no name matches
OF_PIXELS = r"(^|[._])((pixel|image|img)_)?{}s?$"  # the mean or the std of a normalisation in a model
DOUBTED_HEADS, BASE = 12, 768  # heads of some networks that are less wide than ViT-B, and its width
OVERLAPPING, APART, USUAL_SIDES = 16, 12, (224, 256, 384, 448)  # pixels
MOST_SLOTS = 2  # in tables for a square, where registers have none


def join(state: State, whole: str, parts: Sequence[str]) -> None:
    """One layer in place of several, whose rows are stacked. What a file does not have stays as it is."""
    for kind in ("weight", "bias"):
        names = [f"{part}.{kind}" for part in parts]
        if all(name in state for name in names):
            state[f"{whole}.{kind}"] = torch.cat([state.pop(name) for name in names])


def join_blocks(state: State, config: ViTConfig) -> None:
    """`attn.q`, `attn.k` and `attn.v` become `attn.qkv`, and `mlp.fc1_g` the first half of `mlp.fc1`.

    Where keys have no bias in any block, as in BEiT, EVA and DINOv3, it is zero.
    """
    biased_keys = any(name.endswith(".attn.k.bias") for name in state)
    for i in range(config.depth):
        q, k, v = (f"blocks.{i}.attn.{name}" for name in "qkv")
        if f"{q}.bias" in state and not biased_keys:
            state[f"{k}.bias"] = torch.zeros_like(state[f"{q}.bias"])
        join(state, f"blocks.{i}.attn.qkv", (q, k, v))
        join(state, f"blocks.{i}.mlp.fc1", (f"blocks.{i}.mlp.fc1_g", f"blocks.{i}.mlp.fc1"))


def fill_biases(state: State, config: ViTConfig, layers: Iterable[str]) -> None:
    """Zeros in place of the biases of layers that have a bias in no block, such as "attn.proj"."""
    for layer in layers:
        if not any(name.endswith(f".{layer}.bias") for name in state):
            for weight in (f"blocks.{i}.{layer}.weight" for i in range(config.depth)):
                if weight in state:
                    state[weight.replace("weight", "bias")] = state[weight].new_zeros(len(state[weight]))


def share_relative_table(state: State, config: ViTConfig) -> None:
    """A table of relative biases for all blocks becomes part of each one's own, which there need not be."""
    if not config.relative_bias or RELATIVE not in state:
        return
    shared = state.pop(RELATIVE)
    for i in range(config.depth):
        name = f"blocks.{i}.attn.{RELATIVE}"
        state[name] = state[name] + shared if name in state else shared


def pair(size: int | Sequence[int]) -> tuple[int, int]:
    """(height, width) of a size, which is one number for a square."""
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def grid_of(size: tuple[int, int], patch_size: int) -> Grid:
    """Rows and columns of whole patches in an image of (height, width)."""
    return size[0] // patch_size, size[1] // patch_size


def resolve_heads(facts: Facts, known: int | None, where: str, *, width: int) -> int:
    """The published number of heads; where there is none a person has to give it."""
    return (
        facts.resolve("heads", known, Origin.guessed(where)) if known else facts.need({"heads": max(width // 64, 1)})[0]
    )


def has_fixed_positions(source: Source) -> bool:
    """Whether the class token has a position of zeros, which no learned one is."""
    table = source.read("pos_embed") if "pos_embed" in source else None
    return table is not None and table.ndim == 3 and bool(table.any()) and not table[:, 0].any()


def doubt_of_heads(source: Source, width: int) -> str:
    """Why a network of this width may have DOUBTED_HEADS heads, where most have one for 64 numbers; empty if not.

    facebookresearch/moco-v3 vits.py and issue #7, wangsr126/MAE-Lite, and facebookresearch/SLIP models.py.
    """
    if width >= BASE or width % DOUBTED_HEADS:
        return ""
    if has_fixed_positions(source):
        alike = "the positions are fixed sines, as in MoCo v3 and MAE-Lite, whose networks"
    elif any(re.match(r"(module\.)?visual\.blocks\.", theirs) for theirs in source.names_in_file.values()):
        alike = "the network is an image tower, and SLIP's"
    else:
        return ""
    return (
        f"{alike} of this size have {DOUBTED_HEADS} heads; others of this size have {max(width // 64, 1)}. Give the "
        "number, as in this example"
    )


def square_grid(rows: int, slots: Iterable[int] = range(MOST_SLOTS + 1), *, usual: Grid | None = None) -> Grid:
    """Grid of the patches in a table of positions, of which as many rows may be slots: see `fit_positions`. It is the
    `usual` one if that fits, else a square.

    Raises CheckpointError if no number of slots leaves such a grid.
    """
    for patches in (rows - some for some in slots):
        if usual and patches == prod(usual):
            return usual
        side = isqrt(max(patches, 0))
        if side and side * side == patches:
            return side, side
    other = f", nor one of {usual[0]} by {usual[1]}" if usual else ""
    raise CheckpointError(f"a table of {rows} positions does not fit a square grid of patches{other}")


def doubt_of_patches(grid: Grid | None, patch_size: int) -> str:
    """Why positions for so many patches may be of patches that overlap; empty if not.

    damo-cv/TransReID and TACJu/TransFG: kernels of 16 pixels, 12 apart.
    """
    for side in USUAL_SIDES if patch_size == OVERLAPPING and grid else ():
        if grid == ((side - OVERLAPPING) // APART + 1,) * 2:
            whole = grid[0] * patch_size
            return (
                f"{grid[0]} x {grid[1]} positions are those of {whole} x {whole} pixels, or of {side} x {side} in "
                f"patches that overlap, {APART} pixels apart, as in TransReID and TransFG, which is not supported. If "
                "patches do not overlap, give the size, as in this example"
            )
    return ""


def fit_positions(state: State, config: ViTConfig, grid: Grid | None) -> None:
    """Tokens to (1, n, D), and tables of positions, if the file has any, from its `grid` to that of `config`.

    `pos_embed` is (slots + rows * columns, D) in the file. Slots (rows) are for the tokens before the patches, in their
    order, and are added to them; the last tokens may have none.
    Raises CheckpointError for a table of another size.
    """
    prefix = [name for name in PREFIX if name in state]
    for name in prefix:
        state[name] = _batched(state[name])
    if grid is None:
        return
    if "pos_embed" in state:
        table = _batched(state["pos_embed"])
        rows = table.shape[1]
        if not 0 <= rows - prod(grid) <= sum(state[name].shape[1] for name in prefix):
            raise CheckpointError(f"a table of {rows} positions does not fit {grid[0]} by {grid[1]} patches")
        slots, state["pos_embed"] = table.tensor_split([rows - prod(grid)], dim=1)
        for name in prefix:
            own, slots = slots.tensor_split([state[name].shape[1]], dim=1)
            if own.shape[1]:
                state[name] = state[name] + own
    resize_tables(state, grid, config)


def _batched(tokens: Tensor) -> Tensor:
    """One token (D,), or some in any shape (..., D), to (1, n, D). Raises CheckpointError for a single number."""
    if not tokens.ndim:
        raise CheckpointError("a token or a table of positions is a single number")
    return tokens.reshape(1, -1, tokens.shape[-1])


def assign(model: VisionTransformer, tensors: dict[str, Tensor], names_in_file: Mapping[str, str]) -> None:
    """Copy tensors into parameters of the same name and shape. Raises CheckpointError unless all match; it calls a
    tensor that has no place as the file does.
    """
    expected = model.state_dict()
    unused = [names_in_file.get(key, key) for key in sorted(tensors.keys() - expected.keys())]
    complaints = [
        *(f"unused: {name}" for name in unused),
        *(f"missing: {key}" for key in sorted(expected.keys() - tensors.keys())),
        *(
            f"{key} is {tuple(tensors[key].shape)}, not {tuple(expected[key].shape)}"
            for key in sorted(expected.keys() & tensors.keys())
            if tensors[key].shape != expected[key].shape
        ),
    ]
    if complaints:
        advice = about_unused({names_in_file.get(key, key): tensors[key] for key in tensors.keys() - expected.keys()})
        raise CheckpointError(f"the tensors do not fit the network: {first_few(complaints, separator='; ')}{advice}")
    model.load_state_dict(tensors)


def about_unused(unused: Mapping[str, Tensor]) -> str:
    """What a person can do about tensors that the network does not use, by their names in the file; empty without any.

    Only what is known to be for training alone may be left out: all else may be a part of the computation.
    """
    if not unused:
        return ""
    if advice := refusal(unused) or _of_pixels(unused):
        return f". {advice}"
    if not all(map(is_unread, unused)):
        return f". {'Layers that have them are' if len(unused) > 1 else 'The layer that has it is'} not supported"
    flags = " ".join(f"--without '{first}*'" for first in sorted({re.split(r"(?<=\.)", name)[0] for name in unused}))
    return f". Training leaves them beside a network, which does not read them: {flags}"


def _of_pixels(unused: Mapping[str, Tensor]) -> str:
    """What to do about the mean and the standard deviation with which a model normalises its pixels itself."""
    names = {kind: [name for name in unused if re.search(OF_PIXELS.format(kind), name)] for kind in ("mean", "std")}
    if any(len(found) != 1 or unused[found[0]].numel() not in (1, 3) for found in names.values()):
        return ""
    facts = {kind: unused[name].flatten().float().expand(3) for kind, (name,) in names.items()}
    largest = 255 if max(values.max() for values in facts.values()) > 1 else 1
    given = (f"--set {kind}={','.join(f'{value / largest:.6g}' for value in facts[kind].tolist())}" for kind in facts)
    left = (f"--without '{name}'" for (name,) in names.values())
    return (
        f"{' and '.join(name for (name,) in names.values())} are of a normalisation in the model. If its pixels are "
        f"from 0 to {largest}, give {' '.join([*given, *left])}"
    )
