"""OpenCLIP's own files, `open_clip_model.safetensors` with `open_clip_config.json`: the image tower and its projection.

open_clip/transformer.py VisionTransformer and open_clip/model.py CLIPVisionCfg, release 3.3.0. Weights that OpenAI
trained have the same names there. The text tower is not read; transformers' folder of the same model has one that is.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from model.checkpoints.checkpoint import CheckpointError, Description, Origin
from model.checkpoints.facts import Facts
from model.checkpoints.families.huggingface_images import CLIP_MEAN, CLIP_STD
from model.checkpoints.recipe import resolve_recipe, squashed
from model.checkpoints.source import Source
from model.checkpoints.tensors import State, grid_of, pair
from model.config import ViTConfig
from model.preprocessing import Preprocessing

CONFIG = "open_clip_config.json"
FAMILY = "OpenCLIP"
DEFAULTS: dict[str, Any] = {  # of CLIPVisionCfg
    "layers": 12,
    "width": 768,
    "head_width": 64,
    "mlp_ratio": 4.0,
    "patch_size": 16,
    "image_size": 224,
    "ls_init_value": None,
    "no_ln_pre": False,
    "final_ln_after_pool": False,
    "pool_type": "tok",
    "act_kwargs": None,
    "norm_kwargs": None,
}
NOT_SUPPORTED: dict[str, Any] = {  # of CLIPVisionCfg, with their defaults
    "attentional_pool": False,
    "block_type": None,
    "qk_norm": False,
    "scale_attn": False,
    "scale_attn_inner": False,
    "scale_fc": False,
    "scale_heads": False,
    "scaled_cosine_attn": False,
    "timm_model_name": None,
}
# Of CLIPVisionCfg: for training, for other outputs, for a table that is in the file, or for an image tower of timm.
WITHOUT_EFFECT = (
    *("attn_pooler_heads", "attn_pooler_queries", "output_tokens", "patch_dropout", "pos_embed_type", "timm_drop"),
    *("timm_drop_path", "timm_model_pretrained", "timm_pool", "timm_proj", "timm_proj_bias"),
)
OF_MODELS = (  # arguments of CLIP, CoCa and their makers; all but `quick_gelu` are for texts and comparisons
    *("cast_dtype", "custom_text", "embed_dim", "init_logit_bias", "init_logit_scale", "multimodal_cfg"),
    *("nonscalar_logit_scale", "output_dict", "pad_id", "quick_gelu", "text_cfg", "vision_cfg"),
)
RECIPE = {"mean": CLIP_MEAN, "std": CLIP_STD, "interpolation": "bicubic", "resize_mode": "shortest"}
NOT_OF_RECIPES = ("fill_color", "mode", "size")  # of PreprocessCfg: for "longest"; always RGB; always the network's
NAMES = (
    (r"^visual\.", ""),
    (r"^conv1\.", "patch_embed.proj."),
    (r"^class_embedding$", "cls_token"),
    (r"^positional_embedding$", "pos_embed"),
    (r"^ln_pre\.", "norm_pre."),
    (r"^transformer\.resblocks\.", "blocks."),
    (r"\.ln_([12])\.", r".norm\1."),
    (r"\.attn\.in_proj_", ".attn.qkv."),
    (r"\.attn\.out_proj\.", ".attn.proj."),
    (r"\.mlp\.c_fc\.", ".mlp.fc1."),
    (r"\.mlp\.c_proj\.", ".mlp.fc2."),
    (r"\.ls_([12])\.", r".ls\1."),
    (r"^proj$", "pre_logits.weight"),
)
HEADS: dict[str, str] = {}
# The text tower, and the scale and bias of the comparison.
OTHERS = r"(text\w*|transformer|token_embedding|positional_embedding|ln_final|attn_mask|logit_scale|logit_bias)(\..*)?"
POOLS: dict[str, Literal["cls", "mean"]] = {"tok": "cls", "avg": "mean"}


def recognises(source: Source) -> bool:
    return "visual.conv1.weight" in source and "visual.class_embedding" in source


def describe(source: Source, facts: Facts) -> Description:
    stated = _stated(source)
    facts.network = Origin.stated(CONFIG)
    norm = "fc_norm." if stated["final_ln_after_pool"] else "norm."
    source.rename([*NAMES, (r"^ln_post\.", norm)], dropping=OTHERS)
    size = pair(stated["image_size"])
    recipe = preprocessing(source, facts, size)
    heads = stated["width"] // stated["head_width"]
    eps = (stated["norm_kwargs"] or {}).get("eps", 1e-5)
    return Description(
        family=FAMILY,
        architecture="open_clip.VisionTransformer",
        config=ViTConfig(
            image_size=recipe.size,
            patch_size=stated["patch_size"],
            width=stated["width"],
            depth=stated["layers"],
            mlp_dim=int(stated["width"] * stated["mlp_ratio"]),
            heads=facts.resolve("heads", heads, Origin.stated(CONFIG)),
            num_classes=0,
            patch_bias=False,
            norm_pre=not stated["no_ln_pre"],
            norm_eps=facts.resolve("norm_eps", eps, Origin.stated(CONFIG)),
            layer_scale=stated["ls_init_value"] is not None,
            activation=facts.resolve(
                "activation", _activation(source, stated["act_kwargs"] or {}), Origin.stated(CONFIG)
            ),
            final_norm="after_pool" if stated["final_ln_after_pool"] else "before_pool",
            pool=POOLS[stated["pool_type"]],
            representation_size=source.shape("pre_logits.weight")[1],
            representation="linear",
            representation_bias=False,
        ),
        grid=grid_of(size, stated["patch_size"]),
        preprocessing=recipe,
    )


def tensors(state: State, description: Description) -> State:
    state["pre_logits.weight"] = state["pre_logits.weight"].T
    return state


def preprocessing(source: Source, facts: Facts, size: tuple[int, int]) -> Preprocessing:
    """open_clip/transform.py image_transform."""
    content = source.json(CONFIG).get("preprocess_cfg") or {}
    _check_names("preprocess_cfg", content, (*RECIPE, *NOT_OF_RECIPES))
    stated = {**RECIPE, **{name: value for name, value in content.items() if value is not None}}
    mode, kind = stated["resize_mode"], stated["interpolation"]
    if kind == "random" or (mode == "shortest" and size[0] != size[1]):  # as open_clip has it
        kind = "bicubic"
    mean, std = ((of,) * 3 if isinstance(of, int | float) else tuple(of) for of in (stated["mean"], stated["std"]))
    recipe = replace(
        squashed(size, kind, mean=mean, std=std), resize_mode=mode, crop="center" if mode == "shortest" else "none"
    )
    return resolve_recipe(facts, recipe, Origin.stated(CONFIG))


def vision_cfg(source: Source) -> dict[str, Any]:
    """What the file beside the weights states about the image tower, empty without one.

    Raises CheckpointError for a name that open_clip does not know: it may be of a later release.
    """
    model_cfg = source.json(CONFIG).get("model_cfg") or {}
    _check_names("model_cfg", model_cfg, OF_MODELS)
    stated = model_cfg.get("vision_cfg") or {}
    _check_names("vision_cfg", stated, (*DEFAULTS, *NOT_SUPPORTED, *WITHOUT_EFFECT))
    return stated


def _check_names(part: str, stated: dict[str, Any], known: Sequence[str]) -> None:
    unknown = [f"{name} {value!r}" for name, value in stated.items() if name not in known and value is not None]
    if unknown:
        raise CheckpointError(f"{CONFIG} states {', '.join(unknown)} in {part}, and it is not known what that changes")


def _activation(source: Source, arguments: dict[str, Any]) -> Any:
    quick = source.json(CONFIG)["model_cfg"].get("quick_gelu")
    if arguments not in ({}, {"approximate": "none"}, {"approximate": "tanh"}) or (quick and arguments):
        raise CheckpointError(f"{CONFIG} has the act_kwargs {arguments}, which are not supported")
    return "quick_gelu" if quick else "gelu_tanh" if arguments.get("approximate") == "tanh" else "gelu"


def _stated(source: Source) -> dict[str, Any]:
    """The configuration of the image tower, with its defaults. Raises CheckpointError if it is not a plain ViT."""
    vision = vision_cfg(source)
    if not vision:
        raise CheckpointError(
            f"there is no {CONFIG} beside {source.file.name}: download that of a published model, or for a training of "
            'your own write {"model_cfg": open_clip.get_model_config(NAME), "preprocess_cfg": {}} into it as JSON, '
            "with what the training's command changed"
        )
    for name, value in vision.items():
        if name in NOT_SUPPORTED and value != NOT_SUPPORTED[name]:
            raise CheckpointError(f"{CONFIG} has an image tower with {name} {value}, which is not supported")
    stated = {**DEFAULTS, **vision}
    if (stated["norm_kwargs"] or {}).keys() - {"eps"}:
        raise CheckpointError(f"{CONFIG} has the norm_kwargs {stated['norm_kwargs']}, which are not supported")
    if stated["pool_type"] not in POOLS:
        raise CheckpointError(f"{CONFIG} has the pool_type {stated['pool_type']}, which is not supported")
    return stated
