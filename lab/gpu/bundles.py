"""Bundles of real sizes with random weights, exported where they are measured, and where they are found."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.bundle import Bundle, Precision, load_bundle
from export.bundle import write_bundle
from lab.benchmarks.random_model import random_checkpoint
from lab.benchmarks.record import Rows
from model.config import RopeConfig

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
Tables = dict[str, Rows]


@dataclass(frozen=True, kw_only=True)
class Place:
    folder: Path  # a bundle in each of its folders
    names: tuple[str, ...]  # of the bundles to look at; none: all that suit the section
    seconds: float  # of each load on a server

    def bundles(self, *wanted: str) -> dict[str, Bundle]:
        """Those of `wanted` that are there, by name; without `wanted`, all."""
        there = sorted(folder.name for folder in self.folder.iterdir() if (folder / "manifest.json").exists())
        chosen = [name for name in there if not wanted or name in wanted]
        return {name: load_bundle(self.folder / name) for name in chosen if not self.names or name in self.names}


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
