"""A timm network as the image tower of an OpenCLIP file, described by `open_clip_config.json` under other names.

open_clip/timm_model.py TimmModel, release 3.3.0. Its outputs are embeddings, which are compared with text.
"""

from typing import Any

from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.families.openclip import CONFIG
from model.checkpoints.source import Source

TRUNK = "visual.trunk."
PROJECTION = "visual.head.proj"


def prefix(source: Source) -> str:
    """What the names of the network's tensors begin with: nothing in a file of timm's own."""
    return TRUNK if any(key.startswith(TRUNK) for key in source.names) else ""


def config(source: Source) -> dict[str, Any]:
    """config.json, and what open_clip_config.json says beside it, under timm's names."""
    stated = source.json(CONFIG).get("model_cfg", {}).get("vision_cfg", {}) if prefix(source) else {}
    if "timm_model_name" not in stated:
        return source.config
    return {
        "architecture": stated["timm_model_name"],
        "global_pool": stated.get("timm_pool", "avg"),
        "model_args": {"img_size": stated.get("image_size", 224)},
        **source.config,
    }


def projection(source: Source) -> int | None:
    """Width of the embedding, if a layer after the network gives it. Raises CheckpointError for other layers."""
    for key in source.names:
        if key.startswith("visual.head.") and not key.startswith(f"{PROJECTION}."):
            raise CheckpointError(
                f"{source.file.name} has {key}: of OpenCLIP's heads, a linear projection is supported"
            )
    return source.shape(f"{PROJECTION}.weight")[0] if f"{PROJECTION}.weight" in source else None


def take_projection(source: Source) -> dict[str, Tensor]:
    """As `pre_logits`, empty if there is none."""
    names = [f"{PROJECTION}.{kind}" for kind in ("weight", "bias") if f"{PROJECTION}.{kind}" in source]
    return {name.replace(PROJECTION, "pre_logits"): source.take(name) for name in names}
