"""transformers' CLIP, MetaCLIP 2 and SigLIP: the image tower, alone, with a classifier, or beside a text tower.

models/clip/modeling_clip.py, of which models/metaclip_2 is a copy, and models/siglip/modeling_siglip.py. SigLIP 2 of a
fixed resolution is stored as SigLIP. A head is one of three: a classifier over the mean of the patches; the projection
of CLIP to the vectors that are compared with text; SigLIP's attention pool, whose output is compared itself.
"""

from typing import Any, NamedTuple

from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError, Description
from model.checkpoints.facts import Facts
from model.checkpoints.families.huggingface_config import (
    architecture_of,
    check_head,
    describe_model,
    grid_of,
    kind_of,
    pair,
)
from model.checkpoints.families.huggingface_kinds import DEFAULTS
from model.checkpoints.score import Score
from model.checkpoints.source import Source
from model.checkpoints.tensors import fit_positions, join_blocks

PATCHES = "embeddings.patch_embedding.weight"
NAMES = (
    (r"^(.*\.)?vision_model\.", ""),
    (r"^embeddings\.patch_embedding\.", "patch_embed.proj."),
    (r"^embeddings\.class_embedding$", "cls_token"),
    (r"^embeddings\.position_embedding\.weight$", "pos_embed"),
    (r"^pre_layrnorm\.", "norm_pre."),  # transformers spells it so
    (r"^post_layernorm\.", "norm."),
    (r"^encoder\.layers\.", "blocks."),
    (r"\.layer_norm([12])\.", r".norm\1."),
    (r"\.self_attn\.([qkv])_proj\.", r".attn.\1."),
    (r"\.self_attn\.out_proj\.", ".attn.proj."),
    (r"^head\.probe$", "attn_pool.latent"),
    (r"^head\.attention\.in_proj_", "attn_pool.qkv."),
    (r"^head\.attention\.out_proj\.", "attn_pool.proj."),
    (r"^head\.layernorm\.", "attn_pool.norm."),
    (r"^head\.mlp\.", "attn_pool.mlp."),
    (r"^classifier\.", "head."),
    (r"^visual_projection\.", "pre_logits."),
)
DROPPED = r"text_model\..*|text_projection\.weight|logit_(scale|bias)|.*\.position_ids"


class Kind(NamedTuple):
    processor: str  # image processor for files that name none
    class_token: bool  # with it, a norm before the first block
    defaults: dict[str, Any]  # of the configuration class of the image tower, if they differ from DEFAULTS
    score: Score  # of labels that are compared with text: pipelines/zero_shot_image_classification.py


CLIP = Kind("CLIP", True, {"patch_size": 32, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5}, "softmax")
SIGLIP = Kind("Siglip", False, {"hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6}, "sigmoid")
KINDS = {
    "clip": CLIP,
    "clip_vision_model": CLIP,
    "metaclip_2": CLIP,
    "metaclip_2_vision_model": CLIP,
    "siglip": SIGLIP,
    "siglip_vision_model": SIGLIP,
}


def recognises(source: Source) -> bool:
    return any(name.endswith(PATCHES) for name in source.names)


def describe(source: Source, facts: Facts) -> Description:
    kind = kind_of(source.config, KINDS, supported="models with such an image tower")
    stated, in_file, source = _stated(source), source.names, source.renamed(NAMES, dropping=DROPPED)
    has_head = "head.weight" in source
    if has_head:
        check_head(source)
    if not has_head and stated.get("vision_use_head") is False:
        raise CheckpointError(
            f"{architecture_of(source)} has no attention pool (vision_use_head), and so no output to serve"
        )
    text_tower = "text_model.embeddings.token_embedding.weight" in in_file and not has_head
    return describe_model(
        source,
        facts,
        stated,
        {
            "patch_bias": "patch_embed.proj.bias" in source,
            "class_token": kind.class_token,
            "norm_pre": kind.class_token,
            "head_bias": has_head or "logit_bias" in in_file,
            **_head(source, kind, has_head=has_head),
        },
        written=_tower(source),
        processor=kind.processor,
        patch=pair(stated["patch_size"])[0],
        compares=kind.score if text_tower else None,
    )


def tensors(source: Source, description: Description) -> dict[str, Tensor]:
    config, state = description.config, source.renamed(NAMES, dropping=DROPPED).tensors()
    if "head.weight" in state:  # the classifiers do not use them
        unused = ("attn_pool.", "norm.") if config.final_norm == "none" else ("attn_pool.",)
        state = {name: tensor for name, tensor in state.items() if not name.startswith(unused)}
    join_blocks(state, config)
    for kind in ("weight", "bias"):
        if f"attn_pool.qkv.{kind}" in state:  # of torch.nn.MultiheadAttention
            q, kv = state.pop(f"attn_pool.qkv.{kind}").tensor_split([config.width])
            state |= {f"attn_pool.q.{kind}": q, f"attn_pool.kv.{kind}": kv}
    fit_positions(state, config, grid_of(_stated(source), config))
    return state


def _head(source: Source, kind: Kind, *, has_head: bool) -> dict[str, Any]:
    """What the model's output reads, as fields of ViTConfig."""
    if has_head:  # `last_hidden_state`, which CLIP takes before its last norm and SigLIP after it
        return {"pool": "mean", "final_norm": "none" if kind.class_token else "before_pool"}
    if not kind.class_token:
        return {"pool": "map"}
    if "pre_logits.weight" not in source:
        return {}
    rows = source.shape("pre_logits.weight")[0]
    return {"representation_size": rows, "representation": "linear", "representation_bias": False}


def _stated(source: Source) -> dict[str, Any]:
    """The configuration of the image tower, with the defaults of its class."""
    return {**DEFAULTS, **KINDS[source.config["model_type"]].defaults, **_tower(source)}


def _tower(source: Source) -> dict[str, Any]:
    """What config.json states about the image tower. An old `vision_config_dict` comes before `vision_config`."""
    config = source.config
    towers = (config.get("vision_config_dict"), config.get("vision_config"))
    return next((tower for tower in towers if tower is not None), config)
