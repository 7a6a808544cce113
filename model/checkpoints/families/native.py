"""Checkpoints of this project: one safetensors file whose metadata holds everything but the tensors."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from model.checkpoints.checkpoint import Checkpoint, Description
from model.checkpoints.facts import Facts, resolve_score
from model.checkpoints.source import Source
from model.checkpoints.tensors import assign
from model.config import ViTConfig
from model.durable import replacing
from model.positions import resize
from model.preprocessing import Preprocessing
from model.vit import VisionTransformer

FAMILY = "vit-serve"
STORED = ("name", "labels", "wordnet", "score", "figures", "recipe", "history")  # as they are


def recognises(source: Source) -> bool:
    return FAMILY in source.metadata


def describe(source: Source, facts: Facts) -> Description:
    stated = _stated(source)
    config = ViTConfig.from_json(stated["config"])
    size = facts.resolve("image_size", config.image_size, "metadata")
    return Description(
        name=facts.resolve("name", stated["name"], "metadata"),
        family=FAMILY,
        architecture="vit",
        config=replace(config, image_size=size),
        preprocessing=Preprocessing.from_json(stated["preprocessing"]).resized(size),
        labels=tuple(stated["labels"]),
        wordnet=tuple(stated.get("wordnet", ())),
        score=resolve_score(facts, config.num_classes, stated=stated["score"], origin="metadata"),
        figures=stated["figures"],
        recipe=stated.get("recipe", {}),
        history=tuple(stated.get("history", ())),
    )


def tensors(source: Source, description: Description) -> dict[str, Tensor]:
    state, saved = source.tensors(), ViTConfig.from_json(_stated(source)["config"])
    if saved.image_size == description.config.image_size:
        return state
    model = VisionTransformer(saved)
    assign(model, state, source.names_in_file)
    return resize(model, description.config.image_size).state_dict()


def _stated(source: Source) -> dict[str, Any]:
    return json.loads(source.metadata[FAMILY])


def save(checkpoint: Checkpoint, path: Path) -> None:
    """Write the file that this module loads, whole or not at all. Raises OSError, such as for a full disk."""
    stated = {name: getattr(checkpoint, name) for name in STORED}
    stated["config"] = checkpoint.model.config.to_json()
    stated["preprocessing"] = checkpoint.preprocessing.to_json()
    state = {key: tensor.contiguous() for key, tensor in checkpoint.model.state_dict().items()}
    with replacing(path) as temporary:
        try:
            save_file(state, temporary, metadata={FAMILY: json.dumps(stated)})
        except SafetensorError as error:
            raise OSError(f"{path}: {error}") from None
