"""Checkpoints of this project: one safetensors file whose metadata holds everything but the tensors."""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from model.checkpoints.checkpoint import Checkpoint, CheckpointError
from model.config import ViTConfig
from model.preprocessing import Preprocessing
from model.vit import VisionTransformer

FAMILY = "vit-serve"


def recognises(path: Path) -> bool:
    """Whether the file is one of ours, by its content."""
    try:
        with safe_open(path, framework="pt") as file:
            return FAMILY in (file.metadata() or {})
    except (SafetensorError, OSError):
        return False


def load(path: Path) -> Checkpoint:
    """Raises CheckpointError unless every tensor finds its parameter and every parameter its tensor."""
    with safe_open(path, framework="pt") as file:
        facts: dict[str, Any] = json.loads(file.metadata()[FAMILY])
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - safe_open is no mapping
    model = VisionTransformer(ViTConfig.from_json(facts["config"]))
    assign(model, tensors)
    return Checkpoint(
        name=facts["name"],
        family=FAMILY,
        model=model.eval(),
        preprocessing=Preprocessing.from_json(facts["preprocessing"]),
        labels=tuple(facts["labels"]),
        score=facts["score"],
        figures=facts["figures"],
    )


def save(checkpoint: Checkpoint, path: Path) -> None:
    facts = {
        "name": checkpoint.name,
        "config": checkpoint.model.config.to_json(),
        "preprocessing": checkpoint.preprocessing.to_json(),
        "labels": checkpoint.labels,
        "score": checkpoint.score,
        "figures": checkpoint.figures,
    }
    tensors = {key: tensor.contiguous() for key, tensor in checkpoint.model.state_dict().items()}
    save_file(tensors, path, metadata={FAMILY: json.dumps(facts)})


def assign(model: VisionTransformer, tensors: dict[str, Tensor]) -> None:
    """Copy tensors into parameters of the same name and shape; nothing may be left over on either side."""
    expected = model.state_dict()
    complaints = [
        *(f"unused: {key}" for key in tensors.keys() - expected.keys()),
        *(f"missing: {key}" for key in expected.keys() - tensors.keys()),
        *(
            f"{key} is {tuple(tensors[key].shape)}, not {tuple(expected[key].shape)}"
            for key in expected.keys() & tensors.keys()
            if tensors[key].shape != expected[key].shape
        ),
    ]
    if complaints:
        raise CheckpointError("the tensors do not fit the network: " + "; ".join(sorted(complaints)))
    model.load_state_dict(tensors)
