"""torchvision's vit_b_16 ... vit_h_14 and what is fine-tuned from them (torchvision/models/vision_transformer.py)."""

from model.checkpoints.checkpoint import CheckpointError, Description, Origin
from model.checkpoints.facts import Facts
from model.checkpoints.recipe import imagenet, need_recipe, resolve_recipe
from model.checkpoints.source import Source
from model.checkpoints.tensors import State, resolve_heads, square_grid
from model.config import ViTConfig
from model.preprocessing import Interpolation, Preprocessing

NAMES = (
    (r"^class_token$", "cls_token"),
    (r"^encoder\.pos_embedding$", "pos_embed"),
    (r"^conv_proj\.", "patch_embed.proj."),
    (r"^encoder\.layers\.encoder_layer_", "blocks."),
    (r"\.ln_([12])\.", r".norm\1."),
    (r"\.self_attention\.in_proj_", ".attn.qkv."),
    (r"\.self_attention\.out_proj\.", ".attn.proj."),
    (r"\.mlp\.(0|linear_1)\.", ".mlp.fc1."),  # the second in files of MLPBlock version 1
    (r"\.mlp\.(3|linear_2)\.", ".mlp.fc2."),
    (r"^encoder\.ln\.", "norm."),
    (r"^heads\.pre_logits\.", "pre_logits."),
    (r"^heads\.(head\.)?(0\.)?(?=weight|bias)", "head."),  # theirs is heads.head, others replace it in fine-tuning
)

HEADS = {"heads": r"heads\.pre_logits\..*"}

# The constructors by (width, depth, patch), with their heads; each has an entry by image size. A file of
# IMAGENET1K_SWAG_LINEAR_V1 for B/16 or L/16 looks like one of V1: its preprocessing has to be given with --set.
CONSTRUCTORS = {
    (768, 12, 16): ("vit_b_16", 12),
    (768, 12, 32): ("vit_b_32", 12),
    (1024, 24, 16): ("vit_l_16", 16),
    (1024, 24, 32): ("vit_l_32", 16),
    (1280, 32, 14): ("vit_h_14", 16),
}
# Of an entry: its name, and of the arguments of transforms/_presets.py ImageClassification the short side after the
# resize and the interpolation.
WEIGHTS: dict[tuple[str, int], tuple[str, int, Interpolation]] = {
    ("vit_b_16", 224): ("ViT_B_16_Weights.IMAGENET1K_V1", 256, "bilinear"),
    ("vit_b_16", 384): ("ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1", 384, "bicubic"),
    ("vit_b_32", 224): ("ViT_B_32_Weights.IMAGENET1K_V1", 256, "bilinear"),
    ("vit_l_16", 224): ("ViT_L_16_Weights.IMAGENET1K_V1", 242, "bilinear"),
    ("vit_l_16", 512): ("ViT_L_16_Weights.IMAGENET1K_SWAG_E2E_V1", 512, "bicubic"),
    ("vit_l_32", 224): ("ViT_L_32_Weights.IMAGENET1K_V1", 256, "bilinear"),
    ("vit_h_14", 224): ("ViT_H_14_Weights.IMAGENET1K_SWAG_LINEAR_V1", 224, "bicubic"),
    ("vit_h_14", 518): ("ViT_H_14_Weights.IMAGENET1K_SWAG_E2E_V1", 518, "bicubic"),
}


def recognises(source: Source) -> bool:
    return "encoder.pos_embedding" in source and "class_token" in source


def describe(source: Source, facts: Facts) -> Description:
    if "conv_proj.conv_last.weight" in source:
        raise CheckpointError("a stem of convolutions (conv_stem_configs, arXiv 2106.14881) is not supported")
    facts.network = Origin.guessed("torchvision's VisionTransformer")
    source.rename(NAMES)
    width, _, patch, _ = source.shape("patch_embed.proj.weight")
    depth = source.count(r"blocks\.(\d+)\.")
    architecture, heads = CONSTRUCTORS.get((width, depth, patch), ("VisionTransformer", None))
    grid = square_grid(source.shape("pos_embed")[1])
    preprocessing = _preprocessing(architecture, patch * grid[0], facts)
    return Description(
        family="torchvision",
        architecture=architecture,
        config=ViTConfig(
            image_size=preprocessing.size,
            patch_size=patch,
            width=width,
            depth=depth,
            mlp_dim=source.shape("blocks.0.mlp.fc2.weight")[1],
            heads=resolve_heads(facts, heads, f"torchvision's {architecture}", width=width),
            num_classes=source.shape("head.weight")[0] if "head.weight" in source else 0,
            position_resize="bicubic_corners",
            norm_eps=facts.resolve("norm_eps", 1e-6, facts.network),
            representation_size=source.shape("pre_logits.weight")[0] if "pre_logits.weight" in source else None,
        ),
        grid=grid,
        preprocessing=preprocessing,
        advice=""
        if "guessed" not in {facts.origins[name].source for name in ("resize_size", "interpolation")}
        else "The resize is that of torchvision's recipes. If the training had another, give its --set "
        "resize_size= and --set interpolation=.",
    )


def tensors(state: State, description: Description) -> State:
    return state


def _preprocessing(architecture: str, side: int, facts: Facts) -> Preprocessing:
    """That of the published weights with this architecture and image side, and what the command line of
    references/classification/train.py in the file says instead. Files contain no other.
    """
    usual: tuple[str, int, Interpolation] = ("presets", round(side * 256 / 224), "bilinear")
    entry, resized, interpolation = WEIGHTS.get((architecture, side), usual)
    recipe = imagenet(side, resized=resized, interpolation=interpolation)
    if (architecture, side) not in WEIGHTS and not {"resize_size", "interpolation"} <= {one.fact for one in facts.said}:
        why = f"torchvision publishes no {architecture} for {side} x {side} pixels: take the training's transform"
        return need_recipe(facts, why, example=recipe, of="that of torchvision's presets")
    of_table = Origin.read("the table of positions")
    return resolve_recipe(facts, recipe, Origin.guessed(f"torchvision's {entry}"), sized_by=of_table)
