"""Checkpoints of this project: one safetensors file whose metadata holds everything but the tensors."""

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from model.checkpoints.checkpoint import Checkpoint, Description
from model.checkpoints.facts import Facts
from model.checkpoints.source import Source
from model.config import ViTConfig
from model.preprocessing import Preprocessing

FAMILY = "vit-serve"


def recognises(source: Source) -> bool:
    return FAMILY in source.metadata


def describe(source: Source, facts: Facts) -> Description:
    stated: dict[str, Any] = json.loads(source.metadata[FAMILY])
    return Description(
        name=facts.note("name", stated["name"], "metadata"),
        family=FAMILY,
        architecture="vit",
        config=ViTConfig.from_json(stated["config"]),
        preprocessing=Preprocessing.from_json(stated["preprocessing"]),
        labels=tuple(stated["labels"]),
        score=stated["score"],
        figures=stated["figures"],
    )


def tensors(source: Source, description: Description) -> dict[str, Tensor]:
    return {key: source.take(key) for key in source.keys()}  # noqa: SIM118 - a source is no mapping


def save(checkpoint: Checkpoint, path: Path) -> None:
    stated = {
        "name": checkpoint.name,
        "config": checkpoint.model.config.to_json(),
        "preprocessing": checkpoint.preprocessing.to_json(),
        "labels": checkpoint.labels,
        "score": checkpoint.score,
        "figures": checkpoint.figures,
    }
    state = {key: tensor.contiguous() for key, tensor in checkpoint.model.state_dict().items()}
    save_file(state, path, metadata={FAMILY: json.dumps(stated)})
