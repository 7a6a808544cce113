"""Throughput and memory against the size of the image and of the model, after the paper's Fig. 12; random weights.

Labels, and labels with maps, each have a process, which measures one batch size after the other, smallest first.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tqdm import tqdm

from app.bundle import WEIGHTS, Graph
from lab.benchmarks.random_model import random_bundle
from lab.benchmarks.record import Row, Rows

CASES = (
    *(("Ti/16", 224), ("S/16", 224), ("B/16", 224), ("L/16", 224)),
    *(("S/16", 64), ("S/16", 128), ("S/16", 384), ("S/16", 512)),
)
MEMORY_GIB = 8


def measure() -> Rows:
    rows = []
    for variant, side in tqdm(CASES, desc="models"):
        with tempfile.TemporaryDirectory() as folder:
            bundle = random_bundle(Path(folder), variant, side=side)
            lean, explaining = runs(bundle, "classify"), runs(bundle, "explain")
            row: Row = {
                "model": f"ViT-{variant}",
                "side, pixels": side,
                "weights, MiB": round((bundle / WEIGHTS).stat().st_size / 2**20),
                "labels, ms at batch 1": round(lean[0]["ms"], 1),
            }
        rows.append(row | columns("labels", lean) | columns("labels and maps", explaining))
    return rows


def columns(what: str, runs: list[dict[str, float]]) -> Row:
    best = max(runs, key=lambda run: run["batch"] / run["ms"])
    (small, less), (large, more) = ((run["batch"], run["peak_mib"]) for run in (runs[0], runs[-1]))
    an_image = (more - less) / (large - small)
    largest = int((1024 * MEMORY_GIB - less) / an_image) + 1
    return {
        f"{what}, images/s (batch)": f"{1000 * best['batch'] / best['ms']:.1f} ({best['batch']})",
        f"{what}, peak MiB at batch {small} / {large}": f"{less:.0f} / {more:.0f}",
        f"{what}, largest batch in {MEMORY_GIB} GiB": largest,
    }


def runs(bundle: Path, graph: Graph) -> list[dict[str, float]]:
    command = [sys.executable, "-m", "lab.benchmarks.raw", str(bundle), graph]
    measured: list[dict[str, float]] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return measured
