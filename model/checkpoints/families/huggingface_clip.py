"""transformers' CLIP, MetaCLIP 2 and SigLIP: the image tower, alone, with a classifier, or beside a text tower.

models/clip/modeling_clip.py, of which models/metaclip_2 is a copy, and models/siglip/modeling_siglip.py. SigLIP 2 of a
fixed resolution is stored as SigLIP. A head is one of three: a classifier over the mean of the patches; the projection
of CLIP to the vectors that are compared with text; SigLIP's attention pool, whose output is compared itself.
"""

import re
from typing import Any, NamedTuple

import torch
from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError, Description
from model.checkpoints.facts import Facts
from model.checkpoints.families.huggingface_config import CLASSIFIER, architecture_of, describe_model, kind_of, pair
from model.checkpoints.families.huggingface_kinds import DEFAULTS
from model.checkpoints.score import Score
from model.checkpoints.source import Source
from model.checkpoints.tensors import take_layer, without_slots
from model.config import ViTConfig

PATCHES = "embeddings.patch_embedding"
PROJECTION = "visual_projection"
# Names of our layers to theirs. Names in one string are stacked in that order.
BLOCK = {
    "norm1": "layer_norm1",
    "attn.qkv": "self_attn.q_proj self_attn.k_proj self_attn.v_proj",
    "attn.proj": "self_attn.out_proj",
    "norm2": "layer_norm2",
    "mlp.fc1": "mlp.fc1",
    "mlp.fc2": "mlp.fc2",
}
POOL = {"proj": "attention.out_proj", "norm": "layernorm", "mlp.fc1": "mlp.fc1", "mlp.fc2": "mlp.fc2"}


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
    return any(key.endswith(f"{PATCHES}.weight") for key in source.names)


def describe(source: Source, facts: Facts) -> Description:
    kind = kind_of(source.config, KINDS, supported="models with such an image tower")
    stated, has_head = _stated(source), f"{CLASSIFIER}.weight" in source
    if not has_head and stated.get("vision_use_head") is False:
        raise CheckpointError(
            f"{architecture_of(source)} has no attention pool (vision_use_head), and so no output to serve"
        )
    text_tower = "text_model.embeddings.token_embedding.weight" in source and not has_head
    return describe_model(
        source,
        facts,
        stated,
        {
            "patch_bias": f"{_root(source)}{PATCHES}.bias" in source,
            "class_token": kind.class_token,
            "norm_pre": kind.class_token,
            "head_bias": has_head or "logit_bias" in source,
            **_head(source, kind, has_head=has_head),
        },
        written=_tower(source),
        head=CLASSIFIER if has_head else None,
        processor=kind.processor,
        patch=pair(stated["patch_size"])[0],
        compares=kind.score if text_tower else None,
    )


def tensors(source: Source, description: Description) -> dict[str, Tensor]:
    config, root = description.config, _root(source)
    taken = {
        **_embeddings(source, root, config),
        **take_layer(source, "patch_embed.proj", [root + PATCHES]),
    }
    if config.norm_pre:
        taken |= take_layer(source, "norm_pre", [f"{root}pre_layrnorm"])  # transformers spells it so
    if config.final_norm == "before_pool":
        taken |= take_layer(source, "norm", [f"{root}post_layernorm"])
    for i in range(config.depth):
        for ours, theirs in BLOCK.items():
            taken |= take_layer(source, f"blocks.{i}.{ours}", [theirs], place=f"{root}encoder.layers.{i}.")
    if config.pool == "map":
        taken |= _attention_pool(source, f"{root}head.")
    if config.representation_size:
        taken |= take_layer(source, "pre_logits", [PROJECTION])
    if f"{CLASSIFIER}.weight" in source:
        taken |= take_layer(source, "head", [CLASSIFIER])
        source.ignore(rf"{re.escape(root)}(post_layernorm|head)\..*")  # the classifiers do not use them
    source.ignore(r"text_model\..*|text_projection\.weight|logit_(scale|bias)|.*\.position_ids")
    return taken


def _head(source: Source, kind: Kind, *, has_head: bool) -> dict[str, Any]:
    """What the model's output reads, as fields of ViTConfig."""
    if has_head:  # `last_hidden_state`, which CLIP takes before its last norm and SigLIP after it
        return {"pool": "mean", "final_norm": "none" if kind.class_token else "before_pool"}
    if not kind.class_token:
        return {"pool": "map"}
    if f"{PROJECTION}.weight" not in source:
        return {}
    rows = source.shape(f"{PROJECTION}.weight")[0]
    return {"representation_size": rows, "representation": "linear", "representation_bias": False}


def _embeddings(source: Source, root: str, config: ViTConfig) -> dict[str, Tensor]:
    """The class token with its position added, if there is one, and the positions of the patches."""
    place = f"{root}embeddings."
    prefix = {"cls_token": source.take(f"{place}class_embedding").reshape(1, 1, -1)} if config.class_token else {}
    table = source.take(f"{place}position_embedding.weight").unsqueeze(0)  # (1, T, D)
    height, width = pair(_stated(source)["image_size"])
    return without_slots(table, prefix, (height // config.patch_size, width // config.patch_size), config)


def _attention_pool(source: Source, place: str) -> dict[str, Tensor]:
    """SigLIP's torch.nn.MultiheadAttention with a learned query, and the MLP after it."""
    taken = {"attn_pool.latent": source.take(f"{place}probe")}
    for kind in ("weight", "bias"):
        q, k, v = source.take(f"{place}attention.in_proj_{kind}").chunk(3)
        taken |= {f"attn_pool.q.{kind}": q, f"attn_pool.kv.{kind}": torch.cat([k, v])}
    for ours, theirs in POOL.items():
        taken |= take_layer(source, f"attn_pool.{ours}", [theirs], place=place)
    return taken


def _stated(source: Source) -> dict[str, Any]:
    """The configuration of the image tower, with the defaults of its class."""
    return {**DEFAULTS, **KINDS[source.config["model_type"]].defaults, **_tower(source)}


def _tower(source: Source) -> dict[str, Any]:
    """What config.json states about the image tower. An old `vision_config_dict` comes before `vision_config`."""
    config = source.config
    towers = (config.get("vision_config_dict"), config.get("vision_config"))
    return next((tower for tower in towers if tower is not None), config)


def _root(source: Source) -> str:
    """The prefix of the names of the image tower: "vision_model." or nothing."""
    key = next(key for key in source.names if key.endswith(f"{PATCHES}.weight"))
    return key.removesuffix(f"{PATCHES}.weight")
