"""Arguments of timm's `Eva` (models/eva.py): EVA, EVA-02, DINOv3, Perception Encoder, RoPE-ViT, LingBot, Sapiens2."""

from typing import Any, Literal

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.tensors import pair
from model.config import RopeConfig

KINDS: dict[str, Literal["index", "centered", "learned"]] = {  # timm's rope_type
    "cat": "index",
    "dinov3": "centered",
    "mixed": "learned",
}


def as_vision_transformer(name: str, stated: dict[str, Any]) -> dict[str, Any]:
    """The arguments under the names of VisionTransformer. Raises CheckpointError for a final norm on each side."""
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


def rope(name: str, stated: dict[str, Any]) -> RopeConfig | None:
    """Raises CheckpointError for a kind that is not supported."""
    if not stated.get("use_rot_pos_emb"):
        return None
    kind = stated["rope_type"]
    if kind not in KINDS:
        raise CheckpointError(f"{name} has rope_type={kind!r}: supported are {', '.join(map(repr, KINDS))}")
    axes = {"ij": "yx", "xy": "xy"}.get(stated["rope_grid_indexing"], stated["rope_grid_indexing"])
    reference = stated["ref_feat_shape"] if kind == "cat" else None
    return RopeConfig(
        kind=KINDS[kind],
        temperature=float(stated["rope_temperature"]),
        pairs="halves" if stated["rope_rotate_half"] else "neighbours",
        axes=axes,
        offset=0.0 if kind == "mixed" else float(stated["rope_grid_offset"]),
        reference=reference and pair(reference),
    )
