"""Google's JAX files: npz of vit_jax (`models_vit.py`, `models_resnet.py`) and big_vision (`models/vit.py`).

A flax tree is flattened into names with slashes. The two libraries train the same network; vit_jax has a position for
the class token too (1 slot), big_vision for the patches alone. flax numbers modules: before linen with one count, since
then each kind by itself. Google counts the stages and units of a hybrid's ResNet from 1.
"""

import re
from dataclasses import replace

from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError, Description, Origin
from model.checkpoints.facts import Facts
from model.checkpoints.recipe import resolve_recipe, squashed
from model.checkpoints.source import Source
from model.checkpoints.tensors import State, join, join_blocks, square_grid
from model.config import ViTConfig, stem_stride
from model.preprocessing import Preprocessing


def _unit(match: re.Match[str]) -> str:
    return f"patch_embed.backbone.stages.{int(match[1]) - 1}.blocks.{int(match[2]) - 1}."


SCANNED = "blocks.*"  # tensors of all blocks are stacked along a first axis: flax `nn.scan`
NAMES = (
    (r"^cls$", "cls_token"),
    (r"^embedding/", "patch_embed.proj."),
    # Of vit_jax and the paper's big_vision; of big_vision; of big_vision before 2022.
    (r"^(Transformer/posembed_input/|Transformer/|)pos_embedding$", "pos_embed"),
    (r"^conv_root/", "patch_embed.backbone.stem.conv."),
    (r"^gn_root/", "patch_embed.backbone.stem.norm."),
    (r"^block(\d+)/unit(\d+)/", _unit),
    (r"\.conv_proj/", ".downsample.conv."),
    (r"\.gn_proj/", ".downsample.norm."),
    (r"\.conv([123])/", r".conv\1."),
    (r"\.gn([123])/", r".norm\1."),
    (r"^Transformer/encoder_norm/", "norm."),
    (r"^Transformer/encoderblock_(?=\d)", "blocks."),
    (r"^Transformer/encoderblock/", f"{SCANNED}/"),
    (r"^(MAPHead_0/)?probe$", "attn_pool.latent"),
    (r"^(MAPHead_0/)?MultiHeadDotProductAttention_0/", "attn_pool."),  # in the oldest files its parts are in the root
    (r"^(MAPHead_0/)?LayerNorm_0/", "attn_pool.norm."),
    (r"^(MAPHead_0/)?MlpBlock_0/", "attn_pool.mlp."),
    (r"/MultiHeadDotProductAttention_[01]/", "/attn."),
    (r"/LayerNorm_0/", "/norm1."),
    (r"/LayerNorm_[12]/", "/norm2."),
    (r"/MlpBlock_[03]/", "/mlp."),
    (r"Dense_0/", "fc1."),
    (r"Dense_1/", "fc2."),
    (r"\.query/", ".q."),
    (r"\.key/", ".k."),
    (r"\.value/", ".v."),
    (r"\.out/", ".proj."),
    (r"/", "."),
)

HEADS: dict[str, str] = {}  # theirs are kernels
STATE = r"opt/(?!target/).*|chrono/.*|params/[bt]"  # of the optimiser; training time; SigLIP's bias and temperature
# No root, and the roots of flax.linen, of flax.optim, and of two-tower models of big_vision and vit_jax.
ROOTS = ("", "params/", "opt/target/", "params/img/", "img/")
POSITIONS_OF_VIT_JAX = "Transformer/posembed_input/pos_embedding"


def _root(source: Source) -> str | None:
    needed = ("embedding/kernel", "Transformer/encoder_norm/scale")
    return next((root for root in ROOTS if all(root + name in source for name in needed)), None)


def _stem(source: Source) -> tuple[int, ...] | None:
    backbone = r"patch_embed\.backbone\."
    if not any(re.match(backbone, name) for name in source.names):
        return None
    stages = source.count(rf"{backbone}stages\.(\d+)\.")
    return tuple(source.count(rf"{backbone}stages\.{stage}\.blocks\.(\d+)\.") for stage in range(stages))


def recognises(source: Source) -> bool:
    return _root(source) is not None


def describe(source: Source, facts: Facts) -> Description:
    """All facts follow from shapes but the preprocessing and, without a table of positions, the image size."""
    root = _root(source) or ""
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
    library = "vit_jax" if root + POSITIONS_OF_VIT_JAX in source else "big_vision"
    facts.network = Origin.guessed(f"{library}, by the names of the tensors")
    facts.shown = {"heads", "pool"}
    empty = f"{root}pre_logits"  # a dictionary where there is no such layer
    source.rename([(f"^{root}", ""), *NAMES], dropping=f"{STATE}|{empty}")
    scanned = f"{SCANNED}.norm1.scale" in source
    block, axes = (SCANNED, 1) if scanned else ("blocks.0", 0)
    height, width, _, channels = source.shape("patch_embed.proj.kernel")
    if height != width:
        raise CheckpointError(f"patches of {height} x {width} pixels are not square")
    stem = _stem(source)
    patch = height * stem_stride(stem)
    grid = square_grid(source.shape("pos_embed")[1]) if "pos_embed" in source else None
    if grid:
        size = (grid[0] * patch, grid[1] * patch)
    else:
        (size,) = facts.need({"image_size": (224, 224)})
    preprocessing = resolve_recipe(
        facts, *_recipe(library, size), sized_by=Origin.read("the table of positions") if grid else None
    )
    class_token = "cls_token" in source
    config = ViTConfig(
        image_size=preprocessing.size,
        patch_size=patch,
        width=channels,
        depth=source.shape(f"{SCANNED}.norm1.scale")[0] if scanned else source.count(r"blocks\.(\d+)\."),
        mlp_dim=source.shape(f"{block}.mlp.fc1.kernel")[axes + 1],
        heads=source.shape(f"{block}.attn.q.kernel")[axes + 1],  # (D, H, D / H)
        num_classes=source.shape("head.kernel")[1],
        stem_layers=stem,
        stem_numerics="flax",
        class_token=class_token,
        positions="learned" if grid else "sincos2d",
        position_resize="bilinear_corners",
        activation="gelu_tanh",
        pool="cls" if class_token else "map" if "attn_pool.latent" in source else "mean",
        representation_size=source.shape("pre_logits.kernel")[1] if "pre_logits.kernel" in source else None,
    )
    return Description(
        family=library,
        architecture=f"{library} ViT",
        config=config,
        grid=grid,
        preprocessing=preprocessing,
    )


def _recipe(library: str, size: tuple[int, int]) -> tuple[Preprocessing, Origin]:
    """Preprocessing to pixels from -1 to 1, and the file of the library that has it.

    TensorFlow and Pillow resize differently: Pillow reads every pixel when it scales down, TensorFlow's "bilinear"
    reads four. TensorFlow's "area" weighs parts of pixels; Pillow's "hamming" is nearest to it.
    """
    half, rows, columns = (0.5, 0.5, 0.5), *size
    recipe = squashed(size, "bilinear_sampled", mean=half, std=half)
    if library == "vit_jax":
        return recipe, Origin.guessed("vit_jax input_pipeline.py: tf.image.resize to a square")
    resized = (round(rows * 256 / 224), round(columns * 256 / 224))
    shortest = replace(recipe, resize_mode="shortest", resize_size=resized, interpolation="hamming")
    cropped = replace(shortest, crop="center", crop_rounding="floor")
    return cropped, Origin.guessed("big_vision configs/vit_i1k.py: resize_small(256)|central_crop(224)")


def tensors(state: State, description: Description) -> State:
    converted: State = {}
    for name, array in state.items():
        for i, part in enumerate(array if name.startswith(SCANNED) else [array]):
            ours = name.replace(SCANNED, f"blocks.{i}")
            converted[re.sub(r"\.(kernel|scale)$", ".weight", ours)] = _as_torch(name, part)
    join_blocks(converted, description.config)
    join(converted, "attn_pool.kv", ("attn_pool.k", "attn_pool.v"))
    return converted


def _as_torch(name: str, array: Tensor) -> Tensor:
    """In PyTorch's layout. Flax has the inputs of a kernel first, and either side of it can be split into heads."""
    layer, _, leaf = name.rpartition(".")
    if leaf in ("scale", "bias"):  # a group norm's are (1, 1, 1, C), those of queries (H, D / H)
        return array.flatten()
    if leaf != "kernel":
        return array
    if array.ndim == 4:  # (height, width, in, out)
        return array.permute(3, 2, 0, 1)
    return (array.flatten(0, 1) if layer.endswith(".proj") else array.flatten(1)).T
