"""transformers' model types whose image network is a plain ViT, and what config.json means for our network.

A key that is not in config.json has the default of the configuration class, models/*/configuration_*.py.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.facts import Score
from model.config import RopeConfig, stem_stride

Json = dict[str, Any]

ACTIVATIONS = {  # activations.py: names of the same function
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "swish": "silu",
}
DEFAULTS: Json = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "image_size": 224,
    "patch_size": 16,
    "num_channels": 3,
    "qkv_bias": True,
}
BACKBONE: Json = {  # of a hybrid, with as many stages and units as it states: models/bit/configuration_bit.py
    "embedding_size": 64,
    "hidden_sizes": [256, 512, 1024, 2048],
    "layer_type": "bottleneck",
    "hidden_act": "relu",
    "global_padding": "SAME",
    "num_groups": 32,
    "embedding_dynamic_padding": True,
    "output_stride": 32,
    "width_factor": 1,
}
BIT = {"layer_type": "preactivation", "global_padding": None, "embedding_dynamic_padding": False}  # other defaults


class Kind(NamedTuple):
    processor: str  # image processor for files that name none
    switches: Callable[[Json], Json]  # config.json, with defaults, to fields of ViTConfig
    defaults: Json  # of its configuration class, if they differ from DEFAULTS
    interpolates: bool = False  # whether transformers interpolates positions for another image size by default
    headless: Json | None = None  # fields of a model without a classifier, where they differ
    compares: Score | None = None  # of labels that are compared with text: pipelines/zero_shot_image_classification.py


def dinov2(stated: Json) -> Json:
    hidden = int(stated["hidden_size"] * stated["mlp_ratio"])
    registers = stated["num_register_tokens"]
    fields: Json = {"mlp_dim": hidden, "layer_scale": True, "pool": "cls_mean", "registers": registers}
    if registers:
        fields["position_resize"] = "bicubic_antialias"
    if stated["use_swiglu_ffn"]:
        fields |= {"mlp_dim": (int(hidden * 2 / 3) + 7) // 8 * 8, "gated_mlp": True, "activation": "silu"}
    return fields


def dinov3(stated: Json) -> Json:
    rope = RopeConfig(kind="centered", temperature=float(stated["rope_theta"]), pairs="halves")
    fields: Json = {"positions": "none", "rope": rope, "registers": stated["num_register_tokens"], "layer_scale": True}
    return fields | {"gated_mlp": stated["use_gated_mlp"]}


def beit(stated: Json) -> Json:
    absolute = stated["use_absolute_position_embeddings"]
    relative = stated["use_relative_position_bias"] or stated["use_shared_relative_position_bias"]
    if absolute and relative:
        raise CheckpointError(
            "BEiT with absolute positions and relative biases at once is not supported: they resize differently"
        )
    return {
        "positions": "learned" if absolute else "none",
        "relative_bias": relative,
        "position_resize": "bilinear" if relative else "bicubic",
        "qkv_bias": True,  # of queries and values
        "layer_scale": stated["layer_scale_init_value"] > 0,
        "pool": "mean" if stated["use_mean_pooling"] else "cls",
        "final_norm": "after_pool" if stated["use_mean_pooling"] else "before_pool",
    }


def hybrid(stated: Json) -> Json:
    backbone = {**BACKBONE, **BIT, "depths": [3, 4, 6, 3], **stated["backbone_config"]}
    backbone["global_padding"] = str(backbone["global_padding"]).upper()
    depths = backbone["depths"]
    for key, value in {**BACKBONE, "out_features": [f"stage{len(depths)}"]}.items():
        if backbone.get(key, value) != value:
            raise CheckpointError(f"a BiT backbone with {key} {backbone[key]} is not supported")
    return {"stem_layers": tuple(depths), "patch_size": stated["patch_size"] * stem_stride(depths)}


DINOV2 = {"layer_norm_eps": 1e-6, "mlp_ratio": 4, "use_swiglu_ffn": False, "num_register_tokens": 0}
DINOV3 = {
    "hidden_size": 384,
    "intermediate_size": 1536,
    "num_attention_heads": 6,
    "layer_norm_eps": 1e-5,
    "rope_theta": 100.0,
    "num_register_tokens": 0,
    "use_gated_mlp": False,
}
BEIT = {
    "use_absolute_position_embeddings": False,
    "use_relative_position_bias": False,
    "use_shared_relative_position_bias": False,
    "layer_scale_init_value": 0.1,
    "use_mean_pooling": True,
}
# A classifier reads `last_hidden_state`, which CLIP takes before its last norm and SigLIP after it. Without one, CLIP
# projects to the vectors that are compared with text, and what SigLIP's attention pool gives is compared itself.
CLIP = Kind(
    "CLIP",
    lambda _: {"norm_pre": True, "pool": "mean", "final_norm": "none"},
    {"patch_size": 32, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5},
    headless={"pool": "cls", "final_norm": "before_pool", "representation": "linear", "representation_bias": False},
    compares="softmax",
)
SIGLIP = Kind(
    "Siglip",
    lambda _: {"class_token": False, "pool": "mean"},
    {"hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6},
    headless={"pool": "map"},
    compares="sigmoid",
)
KINDS = {
    "vit": Kind("ViT", lambda _: {}, {}),
    "vit_msn": Kind("ViT", lambda _: {}, {"layer_norm_eps": 1e-6}),
    "vit_mae": Kind("ViT", lambda _: {}, {}),
    "deit": Kind("DeiT", lambda _: {"distillation_token": True}, {}),
    "ijepa": Kind("ViT", lambda _: {"class_token": False, "pool": "mean_all"}, {}),
    "dinov2": Kind("Bit", dinov2, {**DINOV2, "patch_size": 14}, True, headless={"pool": "cls"}),
    "dinov2_with_registers": Kind("Bit", dinov2, {**DINOV2, "num_register_tokens": 4}, True, headless={"pool": "cls"}),
    "dinov3_vit": Kind("DINOv3ViT", dinov3, DINOV3, interpolates=True),
    "beit": Kind("Beit", beit, BEIT, interpolates=True),
    "data2vec-vision": Kind("Beit", beit, BEIT, interpolates=True),
    # In transformers 4 alone: models/deprecated/vit_hybrid.
    "vit-hybrid": Kind("ViTHybrid", hybrid, {"patch_size": 1, "backbone_config": {**BACKBONE, "depths": [3, 4, 9]}}),
    "clip": CLIP,
    "clip_vision_model": CLIP,
    "metaclip_2": CLIP,
    "metaclip_2_vision_model": CLIP,
    "siglip": SIGLIP,
    "siglip_vision_model": SIGLIP,
}
