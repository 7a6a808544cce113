"""The probe and fine-tuning with defaults: whole commands, as a person types them, from the demo's checkpoint."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from model.demo.__main__ import WEIGHTS
from tests.benchmarks.learning.sets import SETS
from tests.benchmarks.record import Rows

SEEDS = range(3)  # each draws or divides the images anew


class Command(NamedTuple):
    figures: dict[str, float]
    taken: str  # the learning rate, or the probe
    wall_s: float
    cpu_s: float


def measure() -> Rows:
    """A row for each set of images and seed."""
    return [_row(name, seed) for name in SETS for seed in SEEDS]


def _row(name: str, seed: int) -> dict[str, str | float]:
    with TemporaryDirectory() as place:
        images = Path(place, "images")
        SETS[name](images, seed)
        probe, tuned = (_fit(images, Path(place, f"{method}.safetensors"), method, seed) for method in METHODS)
    figures = tuned.figures
    return {
        "images": name,
        "seed": seed,
        "learned from / judged by": f"{figures['train_images']:,.0f} / {figures['held_out_images']:,.0f}",
        "probe, % right": f"{100 * probe.figures['top1_accuracy']:.1f}",
        "fine-tuning, % right": f"{100 * figures['top1_accuracy']:.1f}",
        "its choice": tuned.taken,
        "probe: s (CPU s)": f"{probe.wall_s:.0f} ({probe.cpu_s:.0f})",
        "fine-tuning: s (CPU s)": f"{tuned.wall_s:.0f} ({tuned.cpu_s:.0f})",
    }


METHODS = ("probe", "finetune")


def _fit(images: Path, out: Path, method: str, seed: int) -> Command:
    """The whole command, from start to report. Its figures are those of the report."""
    paths = [str(WEIGHTS), "--images", str(images), "--out", str(out)]
    before, began = os.times(), time.perf_counter()
    command = [sys.executable, "-m", "export", "fit", *paths, "--method", method, "--seed", str(seed)]
    subprocess.run(command, check=True, capture_output=True)
    wall, after = time.perf_counter() - began, os.times()
    report = json.loads((out.with_suffix(".report") / "report.json").read_text())
    rate = report["recipe"].get("rate")
    return Command(
        figures=report["figures"],
        taken="the probe" if rate is None else f"rate {rate}",
        wall_s=wall,
        cpu_s=sum(after[2:4]) - sum(before[2:4]),  # of children
    )
