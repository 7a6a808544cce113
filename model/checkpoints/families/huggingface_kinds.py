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
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "silu": "silu",
    "swish": "silu",
}
CLASSIFYING = ("ForImageClassification", "ForImageClassificationWithTeacher")  # how classes with a head are named
OF_POOLERS = {**ACTIVATIONS, **{name: name for name in ("linear", "relu", "sigmoid", "tanh")}}
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
    "num_channels": 3,
}
BACKBONE_ONLY = (*BACKBONE, "depths", "out_features", "out_indices")
BIT = {"layer_type": "preactivation", "global_padding": None, "embedding_dynamic_padding": False}  # other defaults


class Kind(NamedTuple):
    processor: str  # image processor for files that name none
    switches: Callable[[Json], Json]  # config.json, with defaults, to fields of ViTConfig
    defaults: Json  # of its configuration class: every key that is read
    nested: bool = False  # whether they are a part of config.json, beside that of a text network
    interpolates: bool = False  # whether transformers interpolates positions for another image size by default
    headless: Json | None = None  # fields of a model without a classifier, where they differ
    compares: Score | None = None  # of labels that are compared with text: pipelines/zero_shot_image_classification.py
    begins: str | None = None  # what its classifiers' names begin with; None: transformers has none, a person may

    @property
    def classifiers(self) -> tuple[str, ...]:
        """Names of transformers' own."""
        return () if self.begins is None else tuple(f"{self.begins}{end}" for end in CLASSIFYING)


def dinov2(stated: Json) -> Json:
    hidden = int(stated["hidden_size"] * stated["mlp_ratio"])
    fields: Json = {"mlp_dim": hidden, "layer_scale": True, "pool": "cls_mean"}
    if "num_register_tokens" in stated:  # of the class that may have registers, also where there are none
        fields |= {"registers": stated["num_register_tokens"], "position_resize": "bicubic_antialias"}
    if stated["use_swiglu_ffn"]:
        fields |= {"mlp_dim": (int(hidden * 2 / 3) + 7) // 8 * 8, "gated_mlp": True, "activation": "silu"}
    return fields


def dinov3(stated: Json) -> Json:
    """The biases that its switches leave out are zeros here."""
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
        "layer_scale": stated["layer_scale_init_value"] > 0,
        "pool": "mean" if stated["use_mean_pooling"] else "cls",
        "final_norm": "after_pool" if stated["use_mean_pooling"] else "before_pool",
    }


def hybrid(stated: Json) -> Json:
    for key in ("use_pretrained_backbone", "use_timm_backbone"):
        if stated[key]:
            raise CheckpointError(f"config.json has {key}: of backbones, a BiT of transformers is supported")
    own = stated["backbone_config"] or {**BACKBONE, "depths": [3, 4, 9]}
    backbone = {**BACKBONE, **BIT, "depths": [3, 4, 6, 3], **own}
    backbone["global_padding"] = str(backbone["global_padding"]).upper()
    depths = backbone["depths"]
    if not isinstance(depths, list):
        raise CheckpointError(f"config.json has a backbone with the depths {depths}: expected such as [3, 4, 9]")
    last = {"out_features": [f"stage{len(depths)}"], "out_indices": [len(depths)]}
    for key, value in {**BACKBONE, **last, "model_type": "bit"}.items():
        if backbone.get(key, value) != value:
            raise CheckpointError(f"a BiT backbone with {key} {backbone[key]} is not supported")
    return {"stem_layers": tuple(depths), "patch_size": stated["patch_size"] * stem_stride(depths)}


EVERY: Json = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "image_size": 224,
    "patch_size": 16,
    "num_channels": 3,
}
PLAIN = {**EVERY, "intermediate_size": 3072}
VIT = {**PLAIN, "qkv_bias": True}
POOLED = {**VIT, "pooler_act": "tanh", "pooler_output_size": None}  # None: as wide as the tokens
HYBRID = {"patch_size": 1, "backbone_config": {}, "use_pretrained_backbone": False, "use_timm_backbone": False}
DINOV2 = {
    **EVERY,
    "layer_norm_eps": 1e-6,
    "qkv_bias": True,
    "mlp_ratio": 4.0,
    "use_swiglu_ffn": False,
}
DINOV3 = {
    **PLAIN,
    "hidden_size": 384,
    "intermediate_size": 1536,
    "num_attention_heads": 6,
    "layer_norm_eps": 1e-5,
    "rope_theta": 100.0,
    "num_register_tokens": 0,
    "use_gated_mlp": False,
    "query_bias": True,
    "key_bias": False,
    "value_bias": True,
    "proj_bias": True,
    "mlp_bias": True,
}
BEIT = {
    **PLAIN,
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
    {**PLAIN, "patch_size": 32, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5},
    headless={"pool": "cls", "final_norm": "before_pool", "representation": "linear", "representation_bias": False},
    compares="softmax",
    begins="CLIP",
)
SIGLIP = Kind(
    "Siglip",
    lambda _: {"class_token": False, "pool": "mean"},
    {**PLAIN, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6, "vision_use_head": True},
    headless={"pool": "map"},
    compares="sigmoid",
    begins="Siglip",
)
WHOLE_CLIP, WHOLE_SIGLIP = CLIP._replace(nested=True), SIGLIP._replace(nested=True)
DINO = Kind("Bit", dinov2, DINOV2, interpolates=True, headless={"pool": "cls"})
KINDS = {
    "vit": Kind("ViT", lambda _: {}, POOLED, begins="ViT"),
    "vit_msn": Kind("ViT", lambda _: {}, {**VIT, "layer_norm_eps": 1e-6}, begins="ViTMSN"),
    "vit_mae": Kind("ViT", lambda _: {}, VIT),
    "deit": Kind("DeiT", lambda _: {"distillation_token": True}, POOLED, begins="DeiT"),
    "ijepa": Kind("ViT", lambda _: {"class_token": False, "pool": "mean_all"}, POOLED, begins="IJepa"),
    "dinov2": DINO._replace(defaults={**DINOV2, "patch_size": 14}, begins="Dinov2"),
    "dinov2_with_registers": DINO._replace(defaults={**DINOV2, "num_register_tokens": 4}, begins="Dinov2WithRegisters"),
    "dinov3_vit": Kind("DINOv3ViT", dinov3, DINOV3, interpolates=True),
    "beit": Kind("Beit", beit, BEIT, interpolates=True, begins="Beit"),
    "data2vec-vision": Kind("Beit", beit, BEIT, interpolates=True, begins="Data2VecVision"),
    # In transformers 4: models/deprecated/vit_hybrid.
    "vit-hybrid": Kind("ViTHybrid", hybrid, {**POOLED, **HYBRID}, begins="ViTHybrid"),
    "clip": WHOLE_CLIP,
    "clip_vision_model": CLIP,
    "metaclip_2": WHOLE_CLIP._replace(begins="MetaClip2"),
    "metaclip_2_vision_model": CLIP._replace(begins="MetaClip2"),
    "siglip": WHOLE_SIGLIP,
    "siglip_vision_model": SIGLIP,
}
