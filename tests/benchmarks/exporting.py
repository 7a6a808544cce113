"""How long `python -m export` takes: whole commands, from start to bundle, of the demo and of random weights."""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from model.checkpoints import load_checkpoint
from model.checkpoints.families.native import save
from model.demo.__main__ import WEIGHTS
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.record import Rows

ROUNDS = 3
VARIANTS = ("S/16", "B/16", "L/16")
KIB = 1024


class Command(NamedTuple):
    seconds: float
    cpu_s: float
    peak: int  # bytes


def measure() -> Rows:
    with TemporaryDirectory() as place:
        checkpoints = {"the demo": WEIGHTS}
        for variant in VARIANTS:
            checkpoints[f"ViT-{variant}"] = Path(place, f"{variant.replace('/', '-')}.safetensors")
            save(random_checkpoint(variant), checkpoints[f"ViT-{variant}"])
        found: dict[str, list[Command]] = {name: [] for name in checkpoints}
        for _ in range(ROUNDS):
            for name, checkpoint in checkpoints.items():
                found[name].append(export(checkpoint, Path(place, "bundle")))
        return [_row(name, size_of(checkpoints[name]), commands) for name, commands in found.items()]


def export(checkpoint: Path, out: Path) -> Command:
    command = [sys.executable, "-m", "export", "--checkpoint", str(checkpoint), "--out", str(out), "--replace"]
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"this failed: {' '.join(command)}")
    return Command(time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss * KIB)


def size_of(checkpoint: Path) -> int:
    """Parameters."""
    return sum(parameter.numel() for parameter in load_checkpoint(checkpoint).model.parameters())


def _row(name: str, parameters: int, commands: list[Command]) -> dict[str, str | float]:
    seconds = [command.seconds for command in commands]
    return {
        "network": name,
        "parameters": f"{parameters / 1e6:.1f} million",
        "seconds": round(statistics.median(seconds)),
        "from": round(min(seconds)),
        "to": round(max(seconds)),
        "of a core, s": round(statistics.median(command.cpu_s for command in commands)),
        "peak memory, GiB": round(max(command.peak for command in commands) / 2**30, 1),
    }
