"""How long `python -m export` takes: whole commands, from start to bundle, of the demo and of random weights."""

import statistics
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from lab.benchmarks.command import Used, run
from lab.benchmarks.random_model import random_checkpoint
from lab.benchmarks.record import Row, Rows
from lab.benchmarks.rounds import in_turn
from model.checkpoints.describe import parameters
from model.checkpoints.families.native import save
from model.checkpoints.load import describe_checkpoint
from model.demo.__main__ import WEIGHTS

ROUNDS = 3
VARIANTS = ("S/16", "B/16", "L/16")


def measure() -> Rows:
    with TemporaryDirectory() as place:
        checkpoints = {"the demo": WEIGHTS}
        for variant in VARIANTS:
            path = checkpoints[f"ViT-{variant}"] = Path(place, f"{variant.replace('/', '-')}.safetensors")
            save(random_checkpoint(variant), path)
        exports = {name: partial(export, checkpoint, Path(place, "bundle")) for name, checkpoint in checkpoints.items()}
        return [
            _row(name, parameters(describe_checkpoint(checkpoints[name]).config), commands)
            for name, commands in in_turn(exports, ROUNDS).items()
        ]


def export(checkpoint: Path, out: Path) -> Used:
    command = [sys.executable, "-m", "export", "--checkpoint", str(checkpoint), "--out", str(out), "--replace"]
    return run(command)


def _row(name: str, size: int, commands: list[Used]) -> Row:
    seconds = [command.seconds for command in commands]
    return {
        "network": name,
        "parameters": f"{size / 1e6:.1f} million",
        "seconds": round(statistics.median(seconds)),
        "from": round(min(seconds)),
        "to": round(max(seconds)),
        "of a core, s": round(statistics.median(command.cpu_s for command in commands)),
    }
