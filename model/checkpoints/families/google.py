"""Google's JAX files: npz of vit_jax (`models_vit.py`, `models_resnet.py`) and big_vision (`models/vit.py`).

A flax tree is flattened into names with slashes. The two libraries train the same network; vit_jax has a position for
the class token too (1 slot), big_vision for the patches alone.
"""

import functools
from dataclasses import replace
from typing import Literal, NamedTuple

from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError, Description
from model.checkpoints.facts import Facts
from model.checkpoints.families.flax_layers import (
    LINEN,
    OLD,
    PRE_LOGITS,
    TRUNK,
    BlockNames,
    Read,
    arranged,
    block_layers,
    map_head_layers,
    stem_layers,
)
from model.checkpoints.recipe import resolve_recipe
from model.checkpoints.score import resolve_score
from model.checkpoints.source import Source
from model.checkpoints.tensors import square_grid, without_slots
from model.config import ViTConfig
from model.preprocessing import Preprocessing

# No root, and the roots of flax.linen, of flax.optim, and of two-tower models of big_vision and vit_jax.
ROOTS = ("", "params/", "opt/target/", "params/img/", "img/")
# Of vit_jax and the paper's big_vision; of big_vision; of big_vision before 2022.
POSITION_TABLES = ("Transformer/posembed_input/pos_embedding", "pos_embedding", "Transformer/pos_embedding")


class Layout(NamedTuple):
    """How a file is laid out: Google has used several layouts over the years."""

    root: str
    library: Literal["vit_jax", "big_vision"]
    depth: int
    scanned: bool  # the tensors of all blocks are stacked along a first axis: flax `nn.scan`
    names: BlockNames
    stem: tuple[int, ...] | None
    positions: str | None
    map_head: str | None  # path of the attention pool; in the oldest files its parts are in the root


def root_of(source: Source) -> str | None:
    return next(
        (r for r in ROOTS if {f"{r}embedding/kernel", f"{r}Transformer/encoder_norm/scale"} <= {*source.names}), None
    )


def layout_of(source: Source) -> Layout:
    root = root_of(source) or ""
    scanned = f"{root}Transformer/encoderblock/LayerNorm_0/scale" in source
    first = f"{root}Transformer/encoderblock{'' if scanned else '_0'}"
    positions = next((path for path in POSITION_TABLES if root + path in source), None)
    return Layout(
        root=root,
        library="vit_jax" if positions == POSITION_TABLES[0] else "big_vision",
        depth=(
            source.shape(f"{first}/LayerNorm_0/scale")[0]
            if scanned
            else source.count(rf"{root}Transformer/encoderblock_(\d+)/")
        ),
        scanned=scanned,
        names=OLD if f"{first}/{OLD.mlp}/Dense_0/kernel" in source else LINEN,
        stem=_stem(source, root),
        positions=positions,
        map_head=next((path for path in ("MAPHead_0/", "") if f"{root}{path}probe" in source), None),
    )


def _stem(source: Source, root: str) -> tuple[int, ...] | None:
    if f"{root}conv_root/kernel" not in source:
        return None
    stages = source.count(rf"{root}block(\d+)/unit1/") - 1
    return tuple(source.count(rf"{root}block{stage}/unit(\d+)/") - 1 for stage in range(1, stages + 1))


def recognises(source: Source) -> bool:
    return root_of(source) is not None


def describe(source: Source, facts: Facts) -> Description:
    """All facts follow from shapes but the preprocessing and, without a table of positions, the image size."""
    layout = layout_of(source)
    _check_head(source, layout.root)

    def shape(path: str) -> tuple[int, ...]:
        return source.shape(layout.root + path)

    def block_shape(path: str) -> tuple[int, ...]:
        number = "" if layout.scanned else "_0"
        return shape(f"Transformer/encoderblock{number}/{path}/kernel")[layout.scanned :]

    heads = block_shape(f"{layout.names.attention}/query")[1]  # (D, H, D / H)
    mlp_dim = block_shape(f"{layout.names.mlp}/Dense_0")[1]
    kernel_height, kernel_width, _, width = shape("embedding/kernel")
    if kernel_height != kernel_width:
        raise CheckpointError(f"patches of {kernel_height} x {kernel_width} pixels are not square")
    stride = 1 if layout.stem is None else 4 << max(len(layout.stem) - 1, 0)
    patch = kernel_height * stride
    if layout.positions:
        side, _ = square_grid(shape(layout.positions)[1], most_slots=1)
        size = (side * patch, side * patch)
    else:
        (size,) = facts.need({"image_size": (224, 224)})
    preprocessing = resolve_recipe(facts, *_recipe(layout.library, size))
    image_size = facts.resolve("image_size", preprocessing.size, "the table of positions")
    num_classes = shape("head/kernel")[1]
    class_token = f"{layout.root}cls" in source
    config = ViTConfig(
        image_size=image_size,
        patch_size=patch,
        width=width,
        depth=layout.depth,
        mlp_dim=mlp_dim,
        heads=heads,
        num_classes=num_classes,
        stem_layers=layout.stem,
        stem_numerics="flax",
        class_token=class_token,
        positions="learned" if layout.positions else "sincos2d",
        position_resize="bilinear_corners",
        activation="gelu_tanh",
        pool="cls" if class_token else "mean" if layout.map_head is None else "map",
        representation_size=(shape("pre_logits/kernel")[1] if f"{layout.root}pre_logits/kernel" in source else None),
    )
    return Description(
        name=facts.resolve("name", source.name, "the file's name"),
        family=layout.library,
        architecture=f"{layout.library} ViT",
        config=config,
        preprocessing=preprocessing,
        labels=(),
        score=resolve_score(facts, num_classes),
    )


def _recipe(library: Literal["vit_jax", "big_vision"], size: tuple[int, int]) -> tuple[Preprocessing, str]:
    """Preprocessing to pixels from -1 to 1, and the file of the library that has it.

    TensorFlow and Pillow resize differently: Pillow reads every pixel when it scales down, TensorFlow's "bilinear"
    reads four. TensorFlow's "area" weighs parts of pixels; Pillow's "hamming" is nearest to it.
    """
    half, rows, columns = (0.5, 0.5, 0.5), *size
    recipe = Preprocessing(
        size=size,
        resize_mode="squash",
        resize_size=size,
        crop="none",
        interpolation="bilinear_sampled",
        mean=half,
        std=half,
    )
    if library == "vit_jax":
        return recipe, "vit_jax input_pipeline.py: tf.image.resize to a square"
    resized = (round(rows * 256 / 224), round(columns * 256 / 224))
    shortest = replace(recipe, resize_mode="shortest", resize_size=resized, interpolation="hamming")
    cropped = replace(shortest, crop="center", crop_rounding="floor")
    return cropped, "big_vision configs/vit_i1k.py: resize_small(256)|central_crop(224)"


def _check_head(source: Source, root: str) -> None:
    if f"{root}head/kernel" not in source:
        raise CheckpointError(
            f"{source.file.name} has no {root}head/kernel: it is an image tower, such as SigLIP's, or a backbone, and"
            " not a classifier"
        )
    if root.endswith("img/") and any("txt/" in key for key in source.names):
        raise CheckpointError(
            f"{source.file.name} has a text tower: its {root}head/kernel gives an embedding to compare with text, not"
            " classes"
        )


def tensors(source: Source, description: Description) -> dict[str, Tensor]:
    config, layout = description.config, layout_of(source)

    def read(path: str) -> Tensor:
        return source.take(layout.root + path)

    @functools.cache
    def stacked(path: str) -> Tensor:
        return read(f"Transformer/encoderblock/{path}")

    def block(number: int) -> Read:
        if layout.scanned:
            return lambda path: stacked(path)[number]
        return lambda path: read(f"Transformer/encoderblock_{number}/{path}")

    state = arranged(TRUNK, read)
    for i in range(layout.depth):
        state |= arranged(block_layers(layout.names), block(i), f"blocks.{i}.")
    if layout.stem is not None:
        state |= arranged(stem_layers(layout.stem), read, "patch_embed.backbone.")
    if layout.map_head is not None:
        state |= arranged(map_head_layers(layout.map_head), read)
        state["attn_pool.latent"] = read(f"{layout.map_head}probe")
    if config.representation_size:
        state |= arranged(PRE_LOGITS, read)
    prefix = {"cls_token": read("cls")} if config.class_token else {}
    if layout.positions:
        table = read(layout.positions)
        state |= without_slots(table, prefix, square_grid(table.shape[1], most_slots=1), config)
    else:
        state |= prefix
    source.ignore(f"{layout.root}pre_logits")  # an empty dictionary where there is no such layer
    source.ignore(
        r"opt/(?!target/).*|chrono/.*|params/[bt]"
    )  # state of the optimiser; training time; SigLIP's bias and temperature
    return state
