"""torchvision's vit_b_16 ... vit_h_14 and what is fine-tuned from them (torchvision/models/vision_transformer.py)."""

import re
from typing import Literal, NamedTuple

from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError, Description
from model.checkpoints.facts import Facts
from model.checkpoints.recipe import imagenet, need_recipe, resolve_recipe
from model.checkpoints.score import resolve_score
from model.checkpoints.source import Source
from model.checkpoints.tensors import first_present, square_grid, take_layer, without_slots
from model.config import ViTConfig
from model.positions import Grid
from model.preprocessing import Preprocessing

POSITIONS = "encoder.pos_embedding"
BLOCKS = "encoder.layers.encoder_layer_"
HEADS = ("heads.head", "heads", "heads.0", "heads.head.0")  # the first is theirs, the others replace it in fine-tuning
HIDDEN = "heads.pre_logits"
BLOCK = {
    "norm1": ("ln_1",),
    "attn.proj": ("self_attention.out_proj",),
    "norm2": ("ln_2",),
    "mlp.fc1": ("mlp.0", "mlp.linear_1"),  # the second in files of MLPBlock version 1
    "mlp.fc2": ("mlp.3", "mlp.linear_2"),
}


class Weights(NamedTuple):
    """An entry of torchvision's ViT_*_Weights: the arguments of transforms/_presets.py ImageClassification."""

    entry: str
    resize: int  # short side
    interpolation: Literal["bilinear", "bicubic"]


# The constructors by (width, depth, patch), with their heads; each has an entry by image size. A file of
# IMAGENET1K_SWAG_LINEAR_V1 for B/16 or L/16 looks like one of V1: its preprocessing has to be given with --set.
CONSTRUCTORS = {
    (768, 12, 16): ("vit_b_16", 12),
    (768, 12, 32): ("vit_b_32", 12),
    (1024, 24, 16): ("vit_l_16", 16),
    (1024, 24, 32): ("vit_l_32", 16),
    (1280, 32, 14): ("vit_h_14", 16),
}
WEIGHTS = {
    ("vit_b_16", 224): Weights("ViT_B_16_Weights.IMAGENET1K_V1", 256, "bilinear"),
    ("vit_b_16", 384): Weights("ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1", 384, "bicubic"),
    ("vit_b_32", 224): Weights("ViT_B_32_Weights.IMAGENET1K_V1", 256, "bilinear"),
    ("vit_l_16", 224): Weights("ViT_L_16_Weights.IMAGENET1K_V1", 242, "bilinear"),
    ("vit_l_16", 512): Weights("ViT_L_16_Weights.IMAGENET1K_SWAG_E2E_V1", 512, "bicubic"),
    ("vit_l_32", 224): Weights("ViT_L_32_Weights.IMAGENET1K_V1", 256, "bilinear"),
    ("vit_h_14", 224): Weights("ViT_H_14_Weights.IMAGENET1K_SWAG_LINEAR_V1", 224, "bicubic"),
    ("vit_h_14", 518): Weights("ViT_H_14_Weights.IMAGENET1K_SWAG_E2E_V1", 518, "bicubic"),
}


def recognises(source: Source) -> bool:
    return POSITIONS in source and "class_token" in source


def describe(source: Source, facts: Facts) -> Description:
    if "conv_proj.conv_last.weight" in source:
        raise CheckpointError("a stem of convolutions (conv_stem_configs, arXiv 2106.14881) is not supported")
    head = f"{first_present(source, HEADS, leaf='.weight')}.weight"
    if head not in source:
        others = ", ".join(key for key in source.names if key.startswith("heads")) or "no heads at all"
        raise CheckpointError(f"the classifier is not a single linear layer: the file has {others}")
    fc1 = f"{BLOCKS}0.{first_present(source, BLOCK['mlp.fc1'], place=f'{BLOCKS}0.', leaf='.weight')}.weight"
    width, _, patch, _ = source.shape("conv_proj.weight")
    depth, classes = source.count(re.escape(BLOCKS) + r"(\d+)\."), source.shape(head)[0]
    architecture, heads = CONSTRUCTORS.get((width, depth, patch), ("VisionTransformer", None))
    preprocessing = _preprocessing(architecture, patch * _grid(source)[0], facts)
    return Description(
        name=facts.resolve("name", source.name, "name of the checkpoint"),
        family="torchvision",
        architecture=architecture,
        config=ViTConfig(
            image_size=preprocessing.size,
            patch_size=patch,
            width=width,
            depth=depth,
            mlp_dim=source.shape(fc1)[0],
            heads=facts.resolve("heads", heads, f"torchvision's {architecture}")
            if heads
            else facts.need({"heads": max(width // 64, 1)})[0],
            num_classes=classes,
            position_resize="bicubic_corners",
            norm_eps=facts.resolve("norm_eps", 1e-6, "torchvision's VisionTransformer"),
            representation_size=source.shape(f"{HIDDEN}.weight")[0] if f"{HIDDEN}.weight" in source else None,
        ),
        preprocessing=preprocessing,
        labels=(),  # torchvision keeps the categories in its code
        score=resolve_score(facts, classes),
    )


def tensors(source: Source, description: Description) -> dict[str, Tensor]:
    config = description.config
    taken = {
        **without_slots(source.take(POSITIONS), {"cls_token": source.take("class_token")}, _grid(source), config),
        **take_layer(source, "patch_embed.proj", ["conv_proj"]),
        **take_layer(source, "norm", ["encoder.ln"]),
        **take_layer(source, "head", HEADS),
    }
    if config.representation_size:
        taken |= take_layer(source, "pre_logits", [HIDDEN])
    for i in range(config.depth):
        ours, theirs = f"blocks.{i}.", f"{BLOCKS}{i}."
        for name, alternatives in BLOCK.items():
            taken |= take_layer(source, ours + name, alternatives, place=theirs)
        for leaf in ("weight", "bias"):
            taken[f"{ours}attn.qkv.{leaf}"] = source.take(f"{theirs}self_attention.in_proj_{leaf}")
    return taken


def _grid(source: Source) -> Grid:
    """Rows and columns of patches; torchvision's images are square."""
    return square_grid(source.shape(POSITIONS)[1], most_slots=1)


def _preprocessing(architecture: str, side: int, facts: Facts) -> Preprocessing:
    """That of the published weights with this architecture and image side; other weights do not contain any."""
    weights = WEIGHTS.get((architecture, side))
    if weights is None:
        why = f"torchvision publishes no {architecture} for {side} x {side} pixels: take the transform of the training"
        return need_recipe(facts, why, size=(side, side), crop_rounding="half_even")
    recipe = imagenet(side, resized=weights.resize, interpolation=weights.interpolation)
    return resolve_recipe(facts, recipe, f"torchvision's {weights.entry}")
