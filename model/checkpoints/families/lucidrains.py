"""vit-pytorch: `ViT` (`vit.py`) and `SimpleViT` (`simple_vit.py`) of releases 0.40 to 1.26, as state dicts.

The releases differ in names, in the place of the last norm and in the norms around the patch projection. vit-pytorch
has no preprocessing, so a file does not contain any; it does not contain the number of heads either.
"""

import re
from math import isqrt, prod

from model.checkpoints.checkpoint import CheckpointError, Description, Origin, first_few
from model.checkpoints.facts import Facts
from model.checkpoints.recipe import resolve_recipe, squashed
from model.checkpoints.source import Source
from model.checkpoints.tensors import State, grid_of, square_grid
from model.config import ViTConfig
from model.positions import Grid

NAMES = (
    (r"^pos_embedding$", "pos_embed"),
    (r"^transformer\.norm\.", "norm."),
    (r"^transformer\.layers\.", "blocks."),
    (r"\.0\.norm\.", ".norm1."),
    (r"\.0\.(fn\.)?to_qkv\.", ".attn.qkv."),
    (r"\.0\.(fn\.)?to_out\.(0\.)?", ".attn.proj."),
    # ViT until 1.2 has a PreNorm around each half, later releases have the norm as the first layer of the MLP.
    (r"\.1\.norm\.", ".norm2."),
    (r"\.1\.fn\.net\.0\.", ".mlp.fc1."),
    (r"\.1\.fn\.net\.3\.", ".mlp.fc2."),
    (r"\.1\.net\.0\.", ".norm2."),
    (r"\.1\.net\.1\.", ".mlp.fc1."),
    (r"\.1\.net\.[34]\.", ".mlp.fc2."),  # SimpleViT has no dropout before it
    (r"^(mlp|linear)_head\.0\.", "fc_norm."),
    (r"^(mlp|linear)_head\.(1\.)?", "head."),
)
POOLS = 'vit-pytorch has pool="cls" and pool="mean" with the same tensors'
HEADS = {head: rf"{head}\.0\.(weight|bias)" for head in ("mlp_head", "linear_head")}  # with a norm before the layer
# What the layers of both are called; other modules of the library have more.
LAYERS = re.compile(
    r"transformer\.(norm\.(weight|bias)|layers\.\d+\.("
    r"0\.((fn\.)?norm\.(weight|bias)|(fn\.)?to_qkv\.weight|(fn\.)?to_out\.(0\.)?(weight|bias))"
    r"|1\.(norm|(fn\.)?net\.[0134])\.(weight|bias)))"
)
PROJECTION = ((r"^to_patch_embedding\.1\.", "patch_embed.proj."),)
NORMED_PROJECTION = (
    (r"^to_patch_embedding\.1\.", "patch_embed.norm_patch."),
    (r"^to_patch_embedding\.2\.", "patch_embed.proj."),
    (r"^to_patch_embedding\.3\.", "patch_embed.norm."),
)


def recognises(source: Source) -> bool:
    """Raises CheckpointError for another module of the library."""
    layers = [name for name in source.names if name.startswith("transformer.")]
    if "to_patch_embedding.1.weight" not in source or not layers:
        return False
    rows = source.shape("pos_embedding")[-2] if "pos_embedding" in source and "cls_token" in source else 0
    others = sorted(name for name in layers if not LAYERS.fullmatch(name))
    if others or (rows and isqrt(rows) ** 2 == rows):
        why = f"it has {first_few(others, most=2)}" if others else "its class token has no position"
        raise CheckpointError(f"of vit-pytorch, ViT and SimpleViT are supported, and this is another module: {why}")
    return True


def describe(source: Source, facts: Facts) -> Description:
    """The position table gives the image size; SimpleViT has no table, and the size is set by hand."""
    facts.network = Origin.guessed("vit-pytorch, by the names of the tensors")
    normed = len(source.shape("to_patch_embedding.1.weight")) == 1
    source.rename([*NAMES, *(NORMED_PROJECTION if normed else PROJECTION)])
    if "head.weight" not in source:
        raise CheckpointError(
            f"{source.file.name} has neither mlp_head nor linear_head: it is a backbone, not a classifier"
        )
    width, pixels = source.shape("patch_embed.proj.weight")
    patch = isqrt(pixels // 3)
    if pixels != 3 * patch**2:
        raise CheckpointError(f"a patch of {pixels} numbers is not a square of RGB pixels")
    attn_dim = source.shape("blocks.0.attn.qkv.weight")[0] // 3
    class_tokens = source.shape("cls_token")[-2] if "cls_token" in source else 0
    grid = _grid(source, facts, patch, class_tokens) if "pos_embed" in source else None
    examples = {"heads": max(attn_dim // 64, 1), "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
    heads, mean, std, *stated = facts.need(examples if grid else {**examples, "image_size": (224, 224)})
    pool = "mean"
    if class_tokens:
        (pool,) = facts.need({"pool": "cls"}, why=f"{POOLS}: give that of the training, as in this example")
        if pool not in ("cls", "mean"):
            raise CheckpointError(f"--set pool={pool}: vit-pytorch has cls and mean")
    if class_tokens and normed and "norm.weight" not in source:
        _check_module(facts)
    size = (grid[0] * patch, grid[1] * patch) if grid else stated[0]
    preprocessing = resolve_recipe(
        facts,
        squashed(size, "bilinear", mean=mean, std=std),
        Origin.guessed("none in vit-pytorch: torchvision's Resize to the size of the network"),
        sized_by=Origin.read("the table of positions") if grid else None,
    )
    return Description(
        family="vit-pytorch",
        architecture="ViT" if grid else "SimpleViT",
        config=ViTConfig(
            image_size=preprocessing.size,
            patch_size=patch,
            width=width,
            depth=source.count(r"blocks\.(\d+)\."),
            mlp_dim=source.shape("blocks.0.mlp.fc1.weight")[0],
            heads=heads,
            num_classes=source.shape("head.weight")[0],
            patch_norm="dual" if normed else "none",
            class_token=class_tokens > 0,
            positions="learned" if grid else "sincos2d",
            norm_eps=1e-5,
            attn_dim=attn_dim,
            attn_proj="blocks.0.attn.proj.weight" in source,
            qkv_bias=False,
            final_norm="before_pool" if "norm.weight" in source else "after_pool",
            pool="cls" if pool == "cls" else "mean_all",
        ),
        grid=grid,
        preprocessing=preprocessing,
        advice="The rectangle takes the first rows of the table of positions: right for a model trained on such ones."
        if grid is not None and prod(grid) < source.shape("pos_embed")[-2] - class_tokens
        else "",
    )


def _check_module(facts: Facts) -> None:
    """Raises CheckpointError unless a person says that vit.py is meant."""
    why = (
        "vit.ViT and ats_vit.ViT of vit-pytorch have the same tensors, and the second leaves out tokens, which is not "
        "supported: give the module, as in this example"
    )
    (module,) = facts.need({"architecture": "vit"}, why=why)
    if module != "vit":
        raise CheckpointError(f"--set architecture={module}: of modules with these tensors, vit is supported")


def _grid(source: Source, facts: Facts, patch: int, class_tokens: int) -> Grid:
    """Rows and columns of patches in the table of positions, of which images with fewer take the first.

    So a table for a square is that of a rectangle whose longer side is the square's, as the library's README has it.
    """
    given = None
    if "image_size" in facts.overrides:
        given = grid_of(facts.resolve("image_size", (224, 224), Origin.read("")), patch)
    whole = square_grid(source.shape("pos_embed")[-2], [class_tokens], usual=given)
    return given if given and max(given) == max(whole) else whole


def tensors(state: State, description: Description) -> State:
    config, p = description.config, description.config.patch_size
    if description.grid:
        state["pos_embed"] = state["pos_embed"][..., : config.class_token + prod(description.grid), :]
    if config.patch_norm == "none":  # the projection as the kernel of a convolution, which has channels first
        state["patch_embed.proj.weight"] = state["patch_embed.proj.weight"].unflatten(1, (p, p, 3)).permute(0, 3, 1, 2)
    if config.attn_proj:  # SimpleViT's projection has no bias
        for i in range(config.depth):
            state.setdefault(f"blocks.{i}.attn.proj.bias", state["head.weight"].new_zeros(config.width))
    return state
