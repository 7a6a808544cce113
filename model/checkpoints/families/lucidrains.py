"""vit-pytorch: `ViT` (`vit.py`) and `SimpleViT` (`simple_vit.py`) of releases 0.40 to 1.26, as state dicts.

The releases differ in names, in the place of the last norm and in the norms around the patch projection. vit-pytorch
has no preprocessing, so a file does not contain any; it does not contain the number of heads either.
"""

from math import isqrt

from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError, Description
from model.checkpoints.facts import Facts
from model.checkpoints.recipe import resolve_recipe
from model.checkpoints.score import resolve_score
from model.checkpoints.source import Source
from model.checkpoints.tensors import square_grid, without_slots
from model.config import ViTConfig
from model.preprocessing import Preprocessing

BLOCK = "transformer.layers.{}."
# Names of our layers to theirs, by the tensor of the first block that distinguishes the releases.
BLOCKS: dict[str, dict[str, str]] = {
    "1.fn.net.0.weight": {  # ViT until 1.2: a PreNorm around each half
        "norm1": "0.norm",
        "attn.qkv": "0.fn.to_qkv",
        "attn.proj": "0.fn.to_out.0",
        "norm2": "1.norm",
        "mlp.fc1": "1.fn.net.0",
        "mlp.fc2": "1.fn.net.3",
    },
    "1.net.4.weight": {  # ViT
        "norm1": "0.norm",
        "attn.qkv": "0.to_qkv",
        "attn.proj": "0.to_out.0",
        "norm2": "1.net.0",
        "mlp.fc1": "1.net.1",
        "mlp.fc2": "1.net.4",
    },
    "1.net.3.weight": {  # SimpleViT has no dropout
        "norm1": "0.norm",
        "attn.qkv": "0.to_qkv",
        "attn.proj": "0.to_out",
        "norm2": "1.net.0",
        "mlp.fc1": "1.net.1",
        "mlp.fc2": "1.net.3",
    },
}
HEADS = ("mlp_head", "linear_head")


def recognises(source: Source) -> bool:
    return _block_names(source) is not None and "to_patch_embedding.1.weight" in source


def _block_names(source: Source) -> dict[str, str] | None:
    first = BLOCK.format(0)
    return next((names for key, names in BLOCKS.items() if first + key in source), None)


def _rest_names(source: Source) -> dict[str, str]:
    """Names of our layers outside the blocks to theirs."""
    dual = len(source.shape("to_patch_embedding.1.weight")) == 1  # a norm comes first
    patch = {"norm_patch": 1, "proj": 2, "norm": 3} if dual else {"proj": 1}
    head = next((name for name in HEADS if f"{name}.weight" in source or f"{name}.1.weight" in source), None)
    if head is None:
        raise CheckpointError(f"{source.file.name} has none of {', '.join(HEADS)}: it is a backbone, not a classifier")
    last = (
        {"norm": "transformer.norm", "head": head}
        if "transformer.norm.weight" in source
        else {"fc_norm": f"{head}.0", "head": f"{head}.1"}
    )
    return {f"patch_embed.{ours}": f"to_patch_embedding.{i}" for ours, i in patch.items()} | last


def describe(source: Source, facts: Facts) -> Description:
    """The position table gives the image size; SimpleViT has no table, and the size is set by hand."""
    block = {ours: BLOCK.format(0) + theirs for ours, theirs in (_block_names(source) or {}).items()}
    rest = _rest_names(source)

    width, pixels = source.shape(f"{rest['patch_embed.proj']}.weight")
    patch = isqrt(pixels // 3)
    if pixels != 3 * patch**2:
        raise CheckpointError(f"a patch of {pixels} numbers is not a square of RGB pixels")
    attn_dim = source.shape(f"{block['attn.qkv']}.weight")[0] // 3
    grid = _grid(source)
    examples = {"heads": max(attn_dim // 64, 1), "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
    heads, mean, std, *stated = facts.need(examples if grid else {**examples, "image_size": (224, 224)})
    size = (grid[0] * patch, grid[1] * patch) if grid else stated[0]
    preprocessing = resolve_recipe(
        facts,
        Preprocessing(
            size=size,
            resize_mode="squash",
            resize_size=size,
            crop="none",
            interpolation="bilinear",
            mean=mean,
            std=std,
        ),
        "none in vit-pytorch: torchvision's Resize to the size of the network",
    )
    image_size = facts.resolve("image_size", preprocessing.size, "the table of positions")
    class_token = (
        "cls_token" in source and source.shape("cls_token")[-2] > 0
    )  # (0, D): ViT(pool="mean") of the latest releases
    pool = facts.resolve("pool", "cls" if class_token else "mean", "whether there is a class token")
    if pool not in ("cls", "mean"):
        raise CheckpointError(f"--set pool={pool}: vit-pytorch has cls and mean")
    num_classes = source.shape(f"{rest['head']}.weight")[0]
    return Description(
        name=facts.resolve("name", source.name, "the file's name"),
        family="vit-pytorch",
        architecture="ViT" if grid else "SimpleViT",
        config=ViTConfig(
            image_size=image_size,
            patch_size=patch,
            width=width,
            depth=source.count(r"transformer\.layers\.(\d+)\."),
            mlp_dim=source.shape(f"{block['mlp.fc1']}.weight")[0],
            heads=heads,
            num_classes=num_classes,
            patch_norm="dual" if "patch_embed.norm_patch" in rest else "none",
            class_token=class_token,
            positions="learned" if grid else "sincos2d",
            norm_eps=1e-5,
            attn_dim=attn_dim,
            attn_proj=f"{block['attn.proj']}.weight" in source,
            qkv_bias=False,
            final_norm="before_pool" if "norm" in rest else "after_pool",
            pool="cls" if pool == "cls" else "mean_all",
        ),
        preprocessing=preprocessing,
        labels=(),
        score=resolve_score(facts, num_classes),
    )


def _grid(source: Source) -> tuple[int, int] | None:
    return square_grid(source.shape("pos_embedding")[-2], most_slots=1) if "pos_embedding" in source else None


def tensors(source: Source, description: Description) -> dict[str, Tensor]:
    config = description.config
    names = _rest_names(source)
    for i in range(config.depth):
        names |= {
            f"blocks.{i}.{ours}": BLOCK.format(i) + theirs for ours, theirs in (_block_names(source) or {}).items()
        }
    state = {
        f"{ours}.{kind}": source.take(f"{theirs}.{kind}")
        for ours, theirs in names.items()
        for kind in ("weight", "bias")
        if f"{theirs}.{kind}" in source
    }
    p = config.patch_size
    if config.patch_norm == "none":  # the projection as the kernel of a convolution, which has channels first
        state["patch_embed.proj.weight"] = state["patch_embed.proj.weight"].unflatten(1, (p, p, 3)).permute(0, 3, 1, 2)
    if config.attn_proj:  # SimpleViT's projection has no bias
        for i in range(config.depth):
            state.setdefault(f"blocks.{i}.attn.proj.bias", state["head.weight"].new_zeros(config.width))
    prefix = {"cls_token": source.take("cls_token").reshape(1, -1, config.width)} if config.class_token else {}
    grid = _grid(source)
    if grid:
        table = source.take("pos_embedding").reshape(1, -1, config.width)
        state |= without_slots(table, prefix, grid, config)
    source.ignore("cls_token")  # it has no rows if the network has no class token
    return state
