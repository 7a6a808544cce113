"""`python -m tests.gpu.gears BUNDLE CORES`: what the two gears of the CPU engine bring on so many cores.

No GPU is needed, only more cores than a laptop has. Prints JSON.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from app.bundle import Bundle, load_bundle
from app.inference.contract import Gear
from app.inference.cpu import OnnxEngine, open_run
from app.inference.gears import WIDTHS, Gears, choose_lanes
from app.machine import allowed_cores
from tests.benchmarks.record import Rows
from tests.gpu.place import Place, Tables

CORES = (1, 2, 4, 8, 12, 16)
BATCHES = (1, 2, 4, 8)
BUNDLES = ("s16-int8", "s16-fp32")


def measure(place: Place) -> Tables:
    """`place.seconds` are shared by the figures of one number of cores."""
    rows: Rows = []
    for name, bundle in place.bundles(*BUNDLES).items():
        for cores in (n for n in CORES if n <= allowed_cores()):
            rows.append({"bundle": name, "cores": cores, **confined(bundle, cores, place.seconds)})
    return {"lean graph": rows}


def confined(bundle: Bundle, cores: int, seconds: float) -> dict[str, str | float]:
    """In a process that is bound to the first `cores` cores."""
    command = [sys.executable, "-m", "tests.gpu.gears", str(bundle.folder), str(cores), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, str | float] = json.loads(done.stdout.splitlines()[-1])
    return found


def both(bundle: Bundle, cores: int, seconds: float) -> dict[str, str | float]:
    size = bundle.manifest.image.size
    each = seconds / (2 + len(BATCHES) + len(WIDTHS))
    wide = opened(bundle, cores, lanes=1)
    rates = {batch: rate(wide, "wide", batch, each) for batch in BATCHES}
    best = max(rates, key=lambda batch: rates[batch])
    row: dict[str, str | float] = {
        "one image, all cores, ms": round(lone(wide, "wide", each), 2),
        "all cores, one image a run, images/s": round(rates[1], 1),
        "all cores, best batch, images/s": round(rates[best], 1),
        "best batch": best,
    }
    del wide
    lane_rates: dict[int, float] = {}
    for width in WIDTHS:
        lanes = cores // width
        row[f"lanes of {width}, images/s"] = ""
        if lanes > 1:
            engine = opened(bundle, cores, lanes=lanes)
            lane_rates[width] = rate(engine, "narrow", 1, each)
            row[f"lanes of {width}, images/s"] = round(lane_rates[width], 1)
            if width == 1:
                row["one image, one core, ms"] = round(lone(engine, "narrow", each), 2)
            del engine
    row.setdefault("one image, one core, ms", "")
    fastest = max(lane_rates.values(), default=0.0)
    row["lanes chosen"] = choose_lanes(cores, partial(open_run, bundle.folder, size, packed=False))
    row["lanes / all cores at their best"] = round(fastest / rates[best], 2)
    return row


def opened(bundle: Bundle, cores: int, *, lanes: int) -> OnnxEngine:
    manifest = bundle.manifest
    return OnnxEngine(
        folder=bundle.folder,
        image_size=manifest.image.size,
        gears=Gears(cores=cores, lanes=lanes),
        known_answer=manifest.known_answer,
    )


def rate(engine: OnnxEngine, gear: Gear, batch: int, seconds: float) -> float:
    """Images a second with as many runs at a time as the gear has."""
    runs = engine._gears.runs[gear]
    with ThreadPoolExecutor(runs) as callers:
        start = time.perf_counter()
        counts = list(callers.map(lambda _: repeat(engine, gear, batch, start + seconds), range(runs)))
    return batch * sum(counts) / (time.perf_counter() - start)


def repeat(engine: OnnxEngine, gear: Gear, batch: int, end: float) -> int:
    count, run = 0, runner(engine, gear, batch)
    while count == 0 or time.perf_counter() < end:
        run()
        count += 1
    return count


def lone(engine: OnnxEngine, gear: Gear, seconds: float) -> float:
    """Milliseconds of one image when nothing else runs, as a median."""
    run, end = runner(engine, gear, 1), time.perf_counter() + seconds
    times: list[float] = []
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1000 * sorted(times)[len(times) // 2]


def runner(engine: OnnxEngine, gear: Gear, batch: int) -> Callable[[], object]:
    assert engine._known
    images: np.ndarray = engine._known.images(batch)
    return partial(engine.run, "classify", images, gear)


def main(folder: str, cores: str, seconds: str) -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    print(json.dumps(both(load_bundle(Path(folder)), int(cores), float(seconds))))


if __name__ == "__main__":
    main(*sys.argv[1:])
