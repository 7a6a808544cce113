"""Changes to a configuration that between them turn every switch of the network."""

from typing import Any

from model.config import RopeConfig

SWITCHES: dict[str, dict[str, Any]] = {
    "mean pooling without a class token": {"pool": "mean", "class_token": False},
    "pre_logits": {"pool": "mean", "representation_size": 9},
    "projection": {"representation_size": 9, "representation": "linear", "representation_bias": False, "pool": "cls"},
    "projection and cosine head": {
        "representation_size": 9, "representation": "linear", "representation_bias": False, "head": "cosine",
        "head_bias": False, "norm_pre": True,
    },
    "attention pooling and cosine head": {"pool": "map", "class_token": False, "head": "cosine"},
    "pre_logits and cosine head": {"pool": "mean", "representation_size": 9, "head": "cosine"},
    "registers, LayerScale, norms of Q and K, SwiGLU, norm after the pool": {
        "registers": 2, "layer_scale": True, "qk_norm": True, "activation": "silu", "gated_mlp": True,
        "final_norm": "after_pool", "pool": "mean",
    },
    "distilled, with two heads": {"distillation_token": True, "distillation_head": True},
    "distilled, with one head": {"distillation_token": True, "norm_eps": 1e-12},
    "attention pooling": {
        "pool": "map", "class_token": False, "activation": "gelu_tanh", "registers": 1, "final_norm": "after_pool",
    },
    "class tokens of two layers and the mean, with registers": {
        "pool": "cls_mean", "head_layers": 2, "registers": 3, "qkv_bias": False,
    },
    "class tokens of two layers": {"head_layers": 2},
    "relative bias": {
        "relative_bias": True, "positions": "none", "pool": "mean", "final_norm": "after_pool", "layer_scale": True,
    },
    "relative bias, class token pooled": {"relative_bias": True},
    "dual patch norm, narrow heads, all tokens pooled": {
        "patch_norm": "dual", "attn_dim": 24, "qkv_bias": False, "pool": "mean_all", "norm_eps": 1e-5,
    },
    "hybrid": {"stem_layers": (1, 1), "stem_numerics": "flax"},
    "norms after the branches, root mean square": {"block": "res_post", "norm": "rms", "positions": "learned_2d"},
    "parallel branches, inner norms": {
        "block": "parallel", "inner_norm": True, "activation": "quick_gelu", "norm_pre": True, "patch_bias": False,
        "head_bias": False, "layer_scale": True,
    },
    "rotary positions beside learned ones, norm in SwiGLU": {
        "rope": RopeConfig(reference=(2, 2), offset=1.0, axes="xy"), "gated_mlp": True, "activation": "silu",
        "mlp_norm": True,
    },
    "rotary positions of DINOv3, registers": {
        "rope": RopeConfig(kind="centered", pairs="halves", temperature=100.0), "positions": "none", "registers": 2,
        "layer_scale": True, "pool": "mean",
    },
    "learned rotary positions, two heads of the answer": {
        "rope": RopeConfig(kind="learned"), "qk_norm": True, "distillation_token": True, "distillation_head": True,
    },
    "attention pooling of all tokens, with sizes of its own": {
        "pool": "map_all", "pool_heads": 4, "pool_mlp_dim": 40, "rope": RopeConfig(), "positions": "none",
    },
    "norm after the patches, fixed positions": {"patch_norm": "after", "positions": "sincos2d", "final_norm": "none"},
}  # fmt: skip
