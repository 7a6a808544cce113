"""OpenCLIP's own files, `open_clip_model.safetensors` with `open_clip_config.json`: the image tower and its projection.

open_clip/transformer.py VisionTransformer and open_clip/model.py CLIPVisionCfg, release 3.3.0. Weights that OpenAI
trained have the same names there. The text tower is not read; transformers' folder of the same model has one that is.
"""

import json
from dataclasses import replace
from typing import Any, Literal

from model.checkpoints.checkpoint import CheckpointError, Description
from model.checkpoints.facts import Facts
from model.checkpoints.families.huggingface_images import CLIP_MEAN, CLIP_STD
from model.checkpoints.recipe import resolve_recipe, squashed
from model.checkpoints.source import Source
from model.checkpoints.tensors import State, grid_of, pair, square_grid
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
WITHOUT_EFFECT = ("patch_dropout", "output_tokens", "pos_embed_type")  # on this output, or on a table in the file
RECIPE = {"mean": CLIP_MEAN, "std": CLIP_STD, "interpolation": "bicubic", "resize_mode": "shortest"}
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
OTHERS = r"(?!visual\.).*"  # the text tower, and the scale and bias of the comparison
POOLS: dict[str, Literal["cls", "mean"]] = {"tok": "cls", "avg": "mean"}


def recognises(source: Source) -> bool:
    return "visual.conv1.weight" in source and "visual.class_embedding" in source


def describe(source: Source, facts: Facts) -> Description:
    stated = _stated(source)
    norm = "fc_norm." if stated["final_ln_after_pool"] else "norm."
    source.rename([*NAMES, (r"^ln_post\.", norm)], dropping=OTHERS)
    size = pair(stated["image_size"])
    recipe = preprocessing(source, facts, size)
    heads = stated["width"] // stated["head_width"]
    eps = (stated["norm_kwargs"] or {}).get("eps", 1e-5)
    tanh = (stated["act_kwargs"] or {}).get("approximate") == "tanh"
    quick = source.json(CONFIG)["model_cfg"].get("quick_gelu")
    activation: Any = "quick_gelu" if quick else "gelu_tanh" if tanh else "gelu"
    return Description(
        family=FAMILY,
        architecture="open_clip.VisionTransformer",
        config=ViTConfig(
            image_size=recipe.size,
            patch_size=stated["patch_size"],
            width=stated["width"],
            depth=stated["layers"],
            mlp_dim=int(stated["width"] * stated["mlp_ratio"]),
            heads=facts.resolve("heads", heads, CONFIG),
            num_classes=0,
            patch_bias=False,
            norm_pre=not stated["no_ln_pre"],
            norm_eps=facts.resolve("norm_eps", eps, CONFIG),
            layer_scale=stated["ls_init_value"] is not None,
            activation=facts.resolve("activation", activation, CONFIG),
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
    stated = {**RECIPE, **source.json(CONFIG).get("preprocess_cfg", {})}
    mode = stated["resize_mode"]
    whole = squashed(size, stated["interpolation"], mean=tuple(stated["mean"]), std=tuple(stated["std"]))
    recipe = replace(whole, resize_mode=mode, crop="center" if mode == "shortest" else "none")
    return resolve_recipe(facts, recipe, CONFIG)


def _unstated(source: Source) -> str:
    """How to write the configuration, and what the shapes of the tensors say of it."""
    width, _, patch, _ = source.shape("visual.conv1.weight")
    side = patch * square_grid(source.shape("visual.positional_embedding")[0], [1])[0]
    layers = source.count(r"visual\.transformer\.resblocks\.(\d+)\.")
    hidden = source.shape("visual.transformer.resblocks.0.mlp.c_fc.weight")[0]
    tower = {"image_size": side, "layers": layers, "width": width, "patch_size": patch, "mlp_ratio": hidden / width}
    usual = {name: value for name, value in tower.items() if (name, value) != ("mlp_ratio", DEFAULTS["mlp_ratio"])}
    shown = json.dumps({"embed_dim": source.shape("visual.proj")[1], "vision_cfg": usual})
    return (
        f"there is no {CONFIG} beside {source.file.name}: download that of a published model, or for a training of "
        'your own write {"model_cfg": open_clip.get_model_config(NAME), "preprocess_cfg": {}} into it as JSON, with '
        f"the NAME of the model in the training's command. By the tensors, that model_cfg has {shown}. What that "
        'command changed has to be in it too, such as "quick_gelu": true in model_cfg, or "mean" in preprocess_cfg'
    )


def _stated(source: Source) -> dict[str, Any]:
    """The configuration of the image tower, with its defaults. Raises CheckpointError for one that is no plain ViT."""
    vision = source.json(CONFIG).get("model_cfg", {}).get("vision_cfg")
    if vision is None:
        raise CheckpointError(_unstated(source))
    for name, value in vision.items():
        if name not in DEFAULTS and name not in WITHOUT_EFFECT and value:
            raise CheckpointError(f"{CONFIG} has an image tower with {name} {value}, which is not supported")
    stated = {**DEFAULTS, **vision}
    if stated["pool_type"] not in POOLS:
        raise CheckpointError(f"{CONFIG} has the pool_type {stated['pool_type']}, which is not supported")
    return stated
