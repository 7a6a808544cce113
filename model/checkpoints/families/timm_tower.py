"""A timm network as the image tower of an OpenCLIP file, described by `open_clip_config.json` under other names.

open_clip/timm_model.py TimmModel, release 3.3.0. Its outputs are embeddings, which are compared with text.
"""

from typing import Any

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.families.openclip import CONFIG
from model.checkpoints.source import Source

TRUNK = "visual.trunk."
NAMES = ((r"^visual\.trunk\.", ""), (r"^visual\.head\.proj\.", "pre_logits."))


def is_tower(source: Source) -> bool:
    return any(name.startswith(TRUNK) for name in source.names)


def described(source: Source) -> dict[str, Any]:
    """config.json, and what open_clip_config.json says beside it, under timm's names."""
    stated = source.json(CONFIG).get("model_cfg", {}).get("vision_cfg", {}) if is_tower(source) else {}
    if "timm_model_name" not in stated:
        return source.config
    return {
        "architecture": stated["timm_model_name"],
        "global_pool": stated.get("timm_pool", "avg"),
        "model_args": {"img_size": stated.get("image_size", 224)},
        **source.config,
    }


def projection(source: Source) -> int | None:
    """Width of the embedding, if a layer after the network gives it; the names of `source` are ours.

    Raises CheckpointError for other layers.
    """
    for name in source.names:
        if name.startswith("visual.head."):
            raise CheckpointError(
                f"{source.file.name} has {name}: of OpenCLIP's heads, a linear projection is supported"
            )
    return source.shape("pre_logits.weight")[0] if "pre_logits.weight" in source else None
