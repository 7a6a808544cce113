"""Bundles of real sizes with random weights, exported where they are measured."""

from typing import Any

from app.bundle import Precision
from export.bundle import write_bundle
from model.config import RopeConfig
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.record import Rows
from tests.gpu.place import Place, Tables

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "s16": ("S/16", {}),
    "b16": ("B/16", {}),
    "l16": ("L/16", {}),
    "s16-rope": ("S/16", {"positions": "none", "rope": RopeConfig(kind="centered", pairs="halves"), "registers": 4}),
    "s16-pooled": ("S/16", {"class_token": False, "pool": "map"}),
}
PRECISIONS: tuple[tuple[str, Precision], ...] = (  # in the order of their use
    *((name, "fp16") for name in MODELS),
    *((name, "fp32") for name in MODELS),
)


def measure(place: Place) -> Tables:
    """Export those that are missing."""
    rows: Rows = []
    for name, precision in PRECISIONS:
        out = place.folder / f"{name}-{precision}"
        if (place.names and out.name not in place.names) or out.exists():
            continue
        variant, changes = MODELS[name]
        write_bundle(random_checkpoint(variant, **changes), out, replace=False, precision=precision)
        rows.append({"bundle": out.name})
    return {"exported": rows}
