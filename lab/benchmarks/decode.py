"""What resize.c and the memory of the processes that decode save: Pillow's way and the service's, in turns.

Each way is a process with the environment of one that decodes. Pillow's has neither the library nor the settings of
memory that are for it and for large images. Of the calls the least counts: neighbours only ever add to CPU time.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from app.images.worker import SET
from lab.benchmarks import stages
from lab.benchmarks.record import ROOT, Row, Rows
from lab.benchmarks.rounds import in_turn
from tests.catalogue.case import encode
from tests.support.pictures import jpeg

SIZES = ((500, 334), (1280, 853), (4000, 3000))
FILTERS = ("bicubic", "bilinear")
WAYS = (stages.PILLOW, "resize.c")
OF_MEMORY = ("GLIBC_TUNABLES", "PILLOW_BLOCK_SIZE")
ROUNDS = 12

Times = dict[str, Any]  # what `stages` answers
Ask = Callable[[str, Path], Times]


def measure() -> Rows:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ways = {way: started(stack, way) for way in WAYS}
        rows = []
        for size in SIZES:
            file = folder / f"{size[0]}×{size[1]}"
            file.write_bytes(encode(stages.decoded(jpeg()).resize(size), "JPEG", quality=90))
            rows += [row(file, name, ways) for name in FILTERS]
        return rows


def started(stack: ExitStack, way: str) -> Ask:
    """Asks a process of its own, which ends with the stack."""
    memory = {name: value for name, value in SET.items() if way != stages.PILLOW or name not in OF_MEMORY}
    command, environment = [sys.executable, "-m", stages.__name__, way], {**os.environ, **memory}
    process = stack.enter_context(
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment, bufsize=1
        )
    )

    def ask(name: str, file: Path) -> Times:
        assert process.stdin
        assert process.stdout
        process.stdin.write(f"{name} {file}\n")
        times: Times = json.loads(process.stdout.readline())
        return times

    return ask


def row(file: Path, name: str, ways: Mapping[str, Ask]) -> Row:
    times = in_turn({way: partial(ask, name, file) for way, ask in ways.items()}, ROUNDS)
    least = {
        stage: [min(float(of_call[stage]) for of_call in times[way]) for way in WAYS]
        for stage in ("resize", "labels", "thumbnail")
    }
    pixels = {of_call["pixels"] for of_way in times.values() for of_call in of_way}

    def both(stage: str) -> str:
        return " / ".join(f"{ms:.2f}" for ms in least[stage])

    def ratio(stage: str) -> float:
        return round(least[stage][0] / least[stage][1], 1)

    return {
        "JPEG": file.name,
        "filter": name,
        "resize and crop: Pillow / resize.c, ms": both("resize"),
        "times as fast": ratio("resize"),
        "decode, resize and crop, ms": both("labels"),
        "times as fast, with decoding": ratio("labels"),
        "thumbnail for maps, ms": both("thumbnail"),
        "same pixels": "yes" if len(pixels) == 1 else "no",
    }
