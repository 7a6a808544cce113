"""The probe and fine-tuning with defaults: whole commands, as a person types them, from the demo's checkpoint."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lab.benchmarks.learning.sets import SETS
from lab.benchmarks.record import Row, Rows
from model.demo.__main__ import WEIGHTS

SEEDS = (3, 4, 5)  # each draws or divides the images anew; with 0 to 2 the defaults were chosen
METHODS = ("probe", "finetune")
AT_A_TIME = 4  # commands


def measure() -> Rows:
    """A row for each set of images and seed."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return list(pool.map(_row, *zip(*((name, seed) for name in SETS for seed in SEEDS), strict=True)))


def _row(name: str, seed: int) -> Row:
    with TemporaryDirectory() as place:
        images = Path(place, "images")
        SETS[name](images, seed)
        probe, tuned = (_fit(images, Path(place, f"{method}.safetensors"), method, seed) for method in METHODS)
    figures, rate = tuned["figures"], tuned["recipe"].get("rate")
    return {
        "images": name,
        "seed": seed,
        "learned from / judged by": f"{figures['train_images']:,.0f} / {figures['held_out_images']:,.0f}",
        "probe, % right": f"{100 * probe['figures']['top1_accuracy']:.1f}",
        "fine-tuning, % right": f"{100 * figures['top1_accuracy']:.1f}",
        "its choice": "the probe" if rate is None else f"rate {rate}",
        "probe, CPU s": round(probe["cpu_s"]),
        "fine-tuning, CPU s": round(tuned["cpu_s"]),
    }


def _fit(images: Path, out: Path, method: str, seed: int) -> dict[str, Any]:
    """The report of the whole command, and `cpu_s`, the seconds of one thread that it took."""
    paths = [str(WEIGHTS), "--images", str(images), "--out", str(out)]
    command = [sys.executable, "-m", "export", "fit", *paths, "--method", method, "--seed", str(seed)]
    quiet, nothing = {**os.environ, "OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1"}, subprocess.DEVNULL
    with subprocess.Popen(command, env=quiet, stdout=nothing, stderr=nothing) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"this failed: {' '.join(command)}")
    report = json.loads((out.with_suffix(".report") / "report.json").read_text())
    return {**report, "cpu_s": used.ru_utime + used.ru_stime}
