"""jeonsworld/ViT-pytorch: Google's ViT in PyTorch, as its train.py saves it (models/modeling.py).

Names resemble those of transformers, and activations are the exact GELU. A file contains no preprocessing: that of
utils/data_utils.py is torchvision's resize to a square, and pixels from -1 to 1.
"""

import re

from model.checkpoints.checkpoint import CheckpointError, Description, Origin
from model.checkpoints.facts import Facts
from model.checkpoints.recipe import resolve_recipe, squashed
from model.checkpoints.source import Source
from model.checkpoints.tensors import NOTHING, State, join_blocks, resolve_heads, square_grid
from model.config import ViTConfig

NAMES = (
    (r"^transformer\.", ""),
    (r"^embeddings\.patch_embeddings\.", "patch_embed.proj."),
    (r"^embeddings\.position_embeddings$", "pos_embed"),
    (r"^embeddings\.cls_token$", "cls_token"),
    (r"^encoder\.encoder_norm\.", "norm."),
    (r"^encoder\.layer\.", "blocks."),
    (r"\.attention_norm\.", ".norm1."),
    (r"\.ffn_norm\.", ".norm2."),
    (r"\.ffn\.", ".mlp."),
    (r"\.attn\.query\.", ".attn.q."),
    (r"\.attn\.key\.", ".attn.k."),
    (r"\.attn\.value\.", ".attn.v."),
    (r"\.attn\.out\.", ".attn.proj."),
)
HEADS = {"head": NOTHING}
PUBLISHED = {(768, 12): 12, (1024, 24): 16, (1280, 32): 16}  # heads by width and blocks: models/configs.py


def recognises(source: Source) -> bool:
    return any(
        re.fullmatch(r"(transformer\.)?encoder\.layer\.0\.attention_norm\.weight", name) for name in source.names
    )


def describe(source: Source, facts: Facts) -> Description:
    if any("hybrid_model." in name for name in source.names):
        raise CheckpointError(
            f"{source.file.name} is an R50 hybrid of jeonsworld/ViT-pytorch, whose ResNet pads in a way of its own, "
            "which is not supported. Google's npz of the hybrid loads"
        )
    facts.network = Origin.guessed("jeonsworld/ViT-pytorch, by the names of the tensors")
    source.rename(NAMES)
    width, _, patch, _ = source.shape("patch_embed.proj.weight")
    depth = source.count(r"blocks\.(\d+)\.")
    grid = square_grid(source.shape("pos_embed")[1], [1])
    recipe = resolve_recipe(
        facts,
        squashed((grid[0] * patch, grid[1] * patch), "bilinear", mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5)),
        Origin.guessed("jeonsworld/ViT-pytorch utils/data_utils.py"),
        sized_by=Origin.read("the table of positions"),
    )
    return Description(
        family="jeonsworld",
        architecture="ViT-pytorch VisionTransformer",
        config=ViTConfig(
            image_size=recipe.size,
            patch_size=patch,
            width=width,
            depth=depth,
            mlp_dim=source.shape("blocks.0.mlp.fc1.weight")[0],
            heads=resolve_heads(facts, PUBLISHED.get((width, depth)), "models/configs.py, by the size", width=width),
            num_classes=source.shape("head.weight")[0] if "head.weight" in source else 0,
            position_resize="bilinear_corners",
        ),
        grid=grid,
        preprocessing=recipe,
    )


def tensors(state: State, description: Description) -> State:
    join_blocks(state, description.config)
    return state
