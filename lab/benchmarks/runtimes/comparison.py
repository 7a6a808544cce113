"""The model alone: this project's graphs, a plain export, OpenVINO and PyTorch, on the same random weights and cores.

Each has its own process. They run one at a time, in turn, so that a change of the machine's speed affects them alike.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import torch

from app.bundle import Graph
from export.bundle import write_bundle
from lab.benchmarks.engines import PRECISIONS
from lab.benchmarks.plain_export import NNCF, SILENT, export_plainly, quantise
from lab.benchmarks.random_model import random_checkpoint
from lab.benchmarks.record import ROOT, Row, Rows
from lab.benchmarks.rounds import in_turn, ratios
from lab.benchmarks.runtimes.process import normalised

VARIANTS = ("Ti/16", "S/16", "B/16")
BATCHES = (1, 8)
ROUNDS = 15
PAUSE = 0.15  # seconds between two runs: ONNX Runtime's threads spin for tens of milliseconds after theirs
CALIBRATION = 32  # images for NNCF
BASE = "ONNX Runtime, plain export"
GRAPHS: dict[str, Graph] = {"labels": "classify", "labels and every map": "explain"}


def measure() -> Rows:
    rows: dict[str, Row] = {}
    for variant in VARIANTS:
        with tempfile.TemporaryDirectory() as temporary:
            expected = Path(temporary, "expected.npy")
            runtimes = prepared(Path(temporary), variant, expected)
            for batch, medians in measured(runtimes, expected, variant).items():
                for name, (ms, ratio) in medians.items():
                    row = rows.setdefault(name, {"runtime": name})
                    row[f"{variant}, batch {batch}: ms (ratio)"] = f"{ms:.1f} ({ratio:.2f})"
    return list(rows.values())


def prepared(folder: Path, variant: str, expected: Path) -> dict[str, list[str]]:
    """Write every form of the model, and the answer it has to give. Returns the arguments of process.py by form."""
    checkpoint = random_checkpoint(variant)
    plain = folder / "plain.onnx"
    with torch.inference_mode():
        np.save(expected, checkpoint.model(torch.from_numpy(normalised(1))).double().numpy())
    export_plainly(checkpoint.model, torch.from_numpy(normalised(2)), plain)
    runtimes = {BASE: ["onnx_runtime", str(plain)]}
    for precision in PRECISIONS:
        write_bundle(checkpoint, folder / precision, replace=False, precision=precision)
        for what, graph in GRAPHS.items():
            runtimes[f"vit-serve, {what}, {precision}"] = ["ours", str(folder / precision), "openvino", graph]
    for what, graph in GRAPHS.items():
        runtimes[f"vit-serve in ONNX Runtime, {what}, fp32"] = ["ours", str(folder / "fp32"), "onnxruntime", graph]
    runtimes["OpenVINO, fp32"] = ["open_vino", str(plain), "f32"]
    runtimes["OpenVINO, bf16"] = ["open_vino", str(plain), "bf16"]
    if NNCF.exists():
        quantise(plain, normalised(CALIBRATION), folder / "int8.xml")
        runtimes["OpenVINO, int8 (NNCF), rest in bf16"] = ["open_vino", str(folder / "int8.xml"), "bf16"]
    else:
        print("NNCF is left out: `make bench` installs it", file=sys.stderr)
    for dtype, precision in (("float32", "fp32"), ("bfloat16", "bf16")):
        for mode in ("eager", "compile"):
            runtimes[f"PyTorch, {mode}, {precision}"] = ["pytorch", variant, dtype, mode]
    return runtimes


def measured(runtimes: dict[str, list[str]], expected: Path, variant: str) -> dict[int, dict[str, tuple[float, float]]]:
    """By batch and name: median milliseconds, and the median ratio to BASE in the same round."""
    medians = {}
    with ExitStack() as stack:
        running = {name: stack.enter_context(Partner(told, expected)) for name, told in runtimes.items()}
        for batch in BATCHES:
            for partner in running.values():
                partner.milliseconds(batch)
            runs = {name: partial(partner.milliseconds, batch, pause=PAUSE) for name, partner in running.items()}
            rounds = in_turn(runs, ROUNDS, desc=f"{variant}, batch {batch}")
            medians[batch] = {
                name: (statistics.median(times), statistics.median(ratios(times, rounds[BASE])))
                for name, times in rounds.items()
            }
    return medians


class Partner(subprocess.Popen[str]):
    """process.py, until the end of a `with` block closes its input."""

    def __init__(self, told: list[str], expected: Path) -> None:
        command = [sys.executable, "-m", "lab.benchmarks.runtimes.process", *told, str(expected)]
        pipe = subprocess.PIPE
        super().__init__(command, env=os.environ | SILENT, stdin=pipe, stdout=pipe, text=True, cwd=ROOT)

    def milliseconds(self, batch: int, *, pause: float = 0) -> float:
        time.sleep(pause)
        assert self.stdin
        assert self.stdout
        print(batch, file=self.stdin, flush=True)
        if line := self.stdout.readline():
            return float(line)
        raise RuntimeError(f"the process ended: {self.args!r}")
