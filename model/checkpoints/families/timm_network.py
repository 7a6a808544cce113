"""The network that computes what one of timm's classes computes with given arguments."""

from typing import Any, Literal

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.families.timm_architectures import Architecture, table
from model.checkpoints.tensors import pair
from model.config import PositionResize, RopeConfig, ViTConfig, stem_stride

# What this network can do, argument by argument: timm's values to those of ViTConfig.
TRANSLATIONS: dict[str, dict[Any, Any]] = {
    "global_pool": {"token": "cls", "avg": "mean", "map": "map"},
    "pos_embed": {"learn": "learned", "": "none", "none": "none"},
    "rel_pos_type": {"mlp": "table", "bias": "table"},
    "norm_layer": {"layernorm": "layer", "rmsnorm": "rms"},
    "act_layer": {name: name for name in ("gelu", "gelu_tanh", "quick_gelu", "silu")} | {"swish": "silu"},
    "block_fn": {
        "Block": "pre_norm",
        "RelPosBlock": "pre_norm",
        "ResPostBlock": "res_post",
        "ResPostRelPosBlock": "res_post",
        "ParallelScalingBlock": "parallel",
    },
    "attn_layer": {"Attention": "plain", "attn": "plain", "": "plain"},
    "attn_type": {"eva": "plain", "rope": "plain"},  # they differ in the names of tensors
    "rope_mrope_section": {None: None},
    "mlp_layer": {"Mlp": "plain", "SwiGLU": "gated", "SwiGLUPacked": "packed"},  # packed: gate and value are one layer
    "scale_mlp": {False: False},
}
# What it cannot do: timm's values to words for an error.
UNSUPPORTED: dict[str, str] = {
    "ParallelThingsBlock": "two attentions side by side in each block",
    "DiffParallelScalingBlock": "differential attention",
    "diff": "differential attention",
    "ConvStem": "a stem of plain convolutions",
    "FeatureListNet": "a ResNet-D as stem",
    "": "no pooling: a label for every token",
    "avgmax": "pooling by maximum",
    "max": "pooling by maximum",
    "prr": "patch representation refinement",
}
ROPES: dict[str, Literal["index", "centered", "learned"]] = {  # timm's rope_type
    "cat": "index",
    "dinov3": "centered",
    "mixed": "learned",
}


DISTILLED = "VisionTransformerDistilled"


def network(architecture: Architecture, *, image_size: tuple[int, int], num_classes: int) -> ViTConfig:
    """The configuration that computes what timm's class computes with these arguments.

    Raises CheckpointError with the argument that is not supported.
    """
    try:
        return _network(architecture, image_size, num_classes)
    except (ValueError, TypeError) as error:  # sizes that are not possible, or no numbers
        raise CheckpointError(f"{architecture.name}: {error}") from None


def _network(architecture: Architecture, image_size: tuple[int, int], num_classes: int) -> ViTConfig:
    stated = _as_vision_transformer(architecture)
    translated = {
        name: _translated(architecture, name, stated[name])
        for name in TRANSLATIONS.keys() & stated.keys() - {"norm_layer"}
    }
    norm, norm_eps = _norm(architecture, stated["norm_layer"])
    stem, block = _stem(architecture, stated["embed_layer"]), translated["block_fn"]
    relative = bool(stated.get("use_rel_pos_bias") or stated.get("use_shared_rel_pos_bias"))
    of_tables: PositionResize = "none" if stated.get("rel_pos_type") == "mlp" else "geometric"
    pool = translated["global_pool"]
    if stated["pool_include_prefix"] and (stated["class_token"] or stated["reg_tokens"]):
        pool = {"mean": "mean_all", "map": "map_all"}.get(pool, pool)
    _check_combination(architecture, stated, relative=relative)
    hidden = int(stated["embed_dim"] * stated["mlp_ratio"])
    hidden += -hidden % (stated.get("swiglu_align_to") or 1)
    pool_ratio = stated.get("attn_pool_mlp_ratio")
    distilled = architecture.model_class == DISTILLED
    return ViTConfig(
        image_size=image_size,
        patch_size=_side(architecture, stated["patch_size"]) * stem_stride(stem),
        width=stated["embed_dim"],
        depth=stated["depth"],
        mlp_dim=hidden // 2 if translated["mlp_layer"] == "packed" else hidden,
        heads=stated["num_heads"],
        num_classes=num_classes,
        stem_layers=stem,
        patch_bias=not stated["pre_norm"],
        patch_norm="after" if stated["embed_norm_layer"] else "none",
        class_token=stated["class_token"],
        distillation_token=distilled,
        registers=stated["reg_tokens"],
        positions=translated["pos_embed"],
        position_resize=of_tables if relative else architecture.position_resize,
        relative_bias=relative,
        rope=_rope(architecture.name, stated),
        norm_pre=stated["pre_norm"],
        block=block,
        norm=norm,
        norm_eps=norm_eps,
        layer_scale=bool(stated["init_values"]) and block != "res_post",  # there it initialises the norms
        inner_norm=stated["scale_attn_norm"],
        mlp_norm=stated["scale_mlp_norm"] and not stated["scale_attn_norm"],
        qkv_bias=stated["qkv_bias"],
        qk_norm=stated["qk_norm"],
        activation=translated["act_layer"],
        gated_mlp=translated["mlp_layer"] != "plain",
        final_norm=final_norm(architecture),
        pool=pool,
        pool_heads=stated.get("attn_pool_num_heads"),
        pool_mlp_dim=None if pool_ratio is None else int(stated["embed_dim"] * pool_ratio),
        distillation_head=distilled,
    )


def final_norm(architecture: Architecture) -> Literal["before_pool", "after_pool", "none"]:
    stated = _as_vision_transformer(architecture)
    if not stated["final_norm"]:
        return "none"
    after = stated["global_pool"] in ("avg", "avgmax", "max") if stated["fc_norm"] is None else stated["fc_norm"]
    return "after_pool" if after else "before_pool"


def patch_side(architecture: Architecture) -> int | None:
    """Side of a patch in pixels. None with a stem, whose convolutions see more than the patches cover."""
    stated = _as_vision_transformer(architecture)
    return _side(architecture, stated["patch_size"]) if stated["embed_layer"] is None else None


def _as_vision_transformer(architecture: Architecture) -> dict[str, Any]:
    """The arguments of any of the classes under the names of VisionTransformer, with its defaults for the others."""
    stated = {**table()["classes"]["VisionTransformer"], **architecture.arguments}
    if architecture.model_class == "Beit":
        stated["fc_norm"] = stated["use_fc_norm"]
        stated["pos_embed"] = "learn" if stated["use_abs_pos_emb"] else ""
        if stated["swiglu_mlp"]:
            stated.update(mlp_layer="SwiGLU", act_layer="silu")
    elif architecture.model_class == "VisionTransformerRelPos":
        stated.update(pos_embed="", use_rel_pos_bias=True)
    elif architecture.model_class == "Eva":
        stated.update(_of_eva(architecture.name, stated))
    return stated


def _check_combination(architecture: Architecture, stated: dict[str, Any], *, relative: bool) -> None:
    """Raises CheckpointError for arguments that are supported alone and not together."""
    if architecture.model_class == DISTILLED and (stated["reg_tokens"] or stated["no_embed_class"]):
        raise CheckpointError(f"{architecture.name} has reg_tokens or no_embed_class, which timm's class leaves out")
    if stated["scale_attn_norm"] and not stated["scale_mlp_norm"]:
        raise CheckpointError(f"{architecture.name} has scale_attn_norm without scale_mlp_norm, which is not supported")
    norms = [_norm(architecture, stated[name]) for name in ("embed_norm_layer", "norm_layer") if stated[name]]
    if len(set(norms)) > 1:
        raise CheckpointError(f"{architecture.name} has an embed_norm_layer that is not its norm_layer")
    if relative and stated["pos_embed"] not in ("", "none"):
        raise CheckpointError(
            f"{architecture.name} has absolute and relative positions, which are not supported at once"
        )


def _translated(architecture: Architecture, argument: str, value: Any) -> Any:
    for theirs, ours in TRANSLATIONS[argument].items():
        if value == theirs:
            return ours
    reason = f"supported are {', '.join(repr(known) for known in TRANSLATIONS[argument])}"
    if isinstance(value, str) and value in UNSUPPORTED:
        reason = f"that is {UNSUPPORTED[value]}, which is not supported"
        if argument == "global_pool" and not value:
            reason += ". --set global_pool=token or global_pool=avg chooses one"
    raise CheckpointError(f"{architecture.name} has {argument}={value!r}: {reason}")


def _norm(architecture: Architecture, layer: Any) -> tuple[Any, float]:
    """Kind and eps of a norm: a name alone stands for timm's own class, whose eps is 1e-6."""
    match layer:
        case str(name):
            eps = 1e-6
        case [str(name), float(eps)]:
            pass
        case _:
            raise CheckpointError(f"{architecture.name} has the norm {layer!r}, which is not supported")
    return _translated(architecture, "norm_layer", name.replace("_", "").lower()), eps


def _stem(architecture: Architecture, layer: Any) -> tuple[int, ...] | None:
    if layer is None:
        return None
    if isinstance(layer, list | tuple) and all(isinstance(units, int) for units in layer):
        return tuple(layer)
    named = UNSUPPORTED.get(layer, layer) if isinstance(layer, str) else f"the embed_layer {layer!r}"
    raise CheckpointError(f"{architecture.name} has {named}, which is not supported")


def _side(architecture: Architecture, size: Any) -> int:
    height, width = pair(size)
    if height != width:
        raise CheckpointError(f"{architecture.name} has patches of {size}; only square ones are supported")
    return height


def _of_eva(name: str, stated: dict[str, Any]) -> dict[str, Any]:
    """Eva's arguments (models/eva.py) under VisionTransformer's names. Raises CheckpointError for two final norms."""
    after = stated["global_pool"] == "avg" if stated["use_fc_norm"] is None else stated["use_fc_norm"]
    before = not after if stated["use_post_transformer_norm"] is None else stated["use_post_transformer_norm"]
    if before and after:
        raise CheckpointError(f"{name} has a norm before its pool and one after it, which is not supported")
    return {
        "pos_embed": "learn" if stated["use_abs_pos_emb"] else "",
        "reg_tokens": stated["num_reg_tokens"],
        "pre_norm": stated["use_pre_transformer_norm"],
        "block_fn": "ResPostBlock" if stated["use_post_norm"] else "Block",
        "init_values": stated["init_values"] is not None,
        "scale_attn_norm": stated["scale_attn_inner"],
        "scale_mlp_norm": stated["scale_mlp"],
        "scale_mlp": False,  # of Beit, where it means another arrangement
        "final_norm": before or after,
        "fc_norm": after,
        "pool_include_prefix": stated["global_pool"] == "map",
        **({"mlp_layer": "SwiGLU", "act_layer": "silu"} if stated["swiglu_mlp"] else {"swiglu_align_to": 0}),
    }


def _rope(name: str, stated: dict[str, Any]) -> RopeConfig | None:
    """Raises CheckpointError for a kind that is not supported."""
    if not stated.get("use_rot_pos_emb"):
        return None
    kind = stated["rope_type"]
    if kind not in ROPES:
        raise CheckpointError(f"{name} has rope_type={kind!r}: supported are {', '.join(map(repr, ROPES))}")
    if kind == "mixed" and stated["rope_rotate_half"]:
        raise CheckpointError(f"{name} has rope_rotate_half with rope_type='mixed', which timm does not have")
    axes = {"ij": "yx", "xy": "xy"}.get(stated["rope_grid_indexing"], stated["rope_grid_indexing"])
    reference = stated["ref_feat_shape"] if kind == "cat" else None
    return RopeConfig(
        kind=ROPES[kind],
        temperature=float(stated["rope_temperature"]),
        pairs="halves" if stated["rope_rotate_half"] else "neighbours",
        axes=axes,
        offset=0.0 if kind == "mixed" else float(stated["rope_grid_offset"]),
        reference=reference and pair(reference),
    )
