"""The model alone: this project's graphs, a plain export, OpenVINO and PyTorch, on the same random weights and cores.

Each has its own process. They run one at a time, in turn, so that a change of the machine's speed affects them alike.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from app.inference.engine import Graph
from app.machine import allowed_cores
from export.bundle import write_bundle
from tests.benchmarks.engines import PRECISIONS
from tests.benchmarks.plain_export import export_plainly
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.record import ROOT, Row, Rows
from tests.benchmarks.rounds import in_turn
from tests.benchmarks.runtimes.conversation import normalised
from tests.benchmarks.spread import ratios

OPENVINO = ROOT / ".venv-bench" / "openvino" / "bin" / "python"
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
            commands = prepared(Path(temporary), variant)
            for batch, medians in measured(commands, variant).items():
                for name, (ms, ratio) in medians.items():
                    row = rows.setdefault(name, {"runtime": name})
                    row[f"{variant}, batch {batch}: ms (ratio)"] = f"{ms:.1f} ({ratio:.2f})"
    return list(rows.values())


def prepared(folder: Path, variant: str) -> dict[str, list[str]]:
    """Make every form of the model. The command that starts each, by name."""
    checkpoint = random_checkpoint(variant)
    expected, plain = str(folder / "expected.npy"), str(folder / "plain.onnx")
    with torch.inference_mode():
        np.save(expected, checkpoint.model(torch.from_numpy(normalised(1))).double().numpy())
    export_plainly(checkpoint.model, Path(plain))
    commands = {BASE: onnx_runtime(plain, expected)}
    for precision in PRECISIONS:
        bundle = folder / precision
        write_bundle(checkpoint, bundle, replace=False, precision=precision)
        for what, graph in GRAPHS.items():
            commands[f"vit-serve, {what}, {precision}"] = ours(bundle, "openvino", graph, expected)
    for what, graph in GRAPHS.items():
        commands[f"vit-serve in ONNX Runtime, {what}, fp32"] = ours(folder / "fp32", "onnxruntime", graph, expected)
    if OPENVINO.exists():
        int8 = str(folder / "int8.xml")
        np.save(folder / "calibration.npy", normalised(CALIBRATION))
        start([*open_vino(), "quantise", plain, str(folder / "calibration.npy"), int8]).communicate()
        cores = str(allowed_cores())
        commands["OpenVINO, fp32"] = [*open_vino(), plain, "f32", cores, expected]
        commands["OpenVINO, bf16"] = [*open_vino(), plain, "bf16", cores, expected]
        commands["OpenVINO, int8 (NNCF), rest in bf16"] = [*open_vino(), int8, "bf16", cores, expected]
    else:
        print("OpenVINO is left out: `make bench` installs it", file=sys.stderr)
    for dtype, mode in (("float32", "eager"), ("float32", "compile"), ("bfloat16", "eager"), ("bfloat16", "compile")):
        command = [sys.executable, "-m", "tests.benchmarks.runtimes.pytorch", variant, dtype, mode, expected]
        commands[f"PyTorch, {mode}, {'fp32' if dtype == 'float32' else 'bf16'}"] = command
    return commands


def ours(bundle: Path, engine: str, graph: Graph, expected: str) -> list[str]:
    return [sys.executable, "-m", "tests.benchmarks.runtimes.ours", str(bundle), engine, graph, expected]


def onnx_runtime(graph: str, expected: str) -> list[str]:
    return [sys.executable, "-m", "tests.benchmarks.runtimes.onnx_runtime", graph, expected]


def open_vino() -> list[str]:
    return [str(OPENVINO), "-m", "tests.benchmarks.runtimes.open_vino"]


def measured(commands: dict[str, list[str]], variant: str) -> dict[int, dict[str, tuple[float, float]]]:
    """By batch and name: median milliseconds, and the median ratio to BASE in the same round."""
    medians = {}
    with ExitStack() as stack:
        running = {name: stack.enter_context(conversing(command)) for name, command in commands.items()}
        for batch in BATCHES:
            for partner in running.values():
                partner.milliseconds(batch)
            runs = {name: partial(after_pause, partner, batch) for name, partner in running.items()}
            rounds = in_turn(runs, ROUNDS, desc=f"{variant}, batch {batch}")
            medians[batch] = {
                name: (statistics.median(times), statistics.median(ratios(times, rounds[BASE])))
                for name, times in rounds.items()
            }
    return medians


@dataclass(frozen=True, kw_only=True)
class Partner:
    """A process that speaks the protocol of conversation.py."""

    process: subprocess.Popen[str]

    def milliseconds(self, batch: int) -> float:
        assert self.process.stdin
        assert self.process.stdout
        print(batch, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process ended: {self.process.args!r}")
        return float(line)


def after_pause(partner: Partner, batch: int) -> float:
    time.sleep(PAUSE)
    return partner.milliseconds(batch)


@contextmanager
def conversing(command: list[str]) -> Iterator[Partner]:
    process = start(command)
    try:
        yield Partner(process=process)
    finally:
        process.communicate()  # closes its input, which ends it


def start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
