"""What the service does where the GPU's memory is short: at its start, and while it serves."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from lab.benchmarks.record import Row, Rows
from lab.benchmarks.under_load import under_load
from lab.gpu.bundles import Place, Tables
from lab.gpu.card import used_mib
from tests.support.pictures import classify_jpeg
from tests.support.server import PATIENT, running

LEFT_MIB = (16384, 4096, 2048, 1024, 512)
LEAST_MIB = 300
LIMITS_MIB = (8192, 2048, 1024, 512)
DEVICE = "cuda"
CONNECTIONS = 32
HOLDER = """
import sys, torch
free, _ = torch.cuda.mem_get_info()
held = [torch.empty(free - int(sys.argv[1]) * 2**20, dtype=torch.uint8, device="cuda")]
print("held", flush=True)
sys.stdin.read()
"""


def measure(place: Place) -> Tables:
    rows: Rows = []
    for name, bundle in place.bundles("b16-fp16").items():
        start = partial(started, bundle.folder, place.seconds)
        for left in LEFT_MIB:
            with all_but(left):
                rows.append({"bundle": name, "short of": f"{left} MiB left", **start()})
        for limit in LIMITS_MIB:
            row = start(gpu_memory_bytes=limit * 2**20)
            rows.append({"bundle": name, "short of": f"limit of {limit} MiB", **row})
        rows.append({"bundle": name, "short of": "all, once ready", **start(meanwhile=all_but(LEAST_MIB))})
    return {"memory": rows}


def started(
    folder: Path, seconds: float, *, meanwhile: AbstractContextManager[None] | None = None, **settings: Any
) -> Row:
    """Whether it starts, with which batches, what it says, and how many images it answers: `meanwhile`, if given."""
    before = used_mib()
    try:
        with running(folder, device=DEVICE, **PATIENT, **settings) as server:
            request = classify_jpeg("?attention=now")
            under_load(server, request, seconds / 4, connections=CONNECTIONS)
            with meanwhile or nullcontext():
                figures = under_load(server, request, seconds / 2, connections=CONNECTIONS)
            latency = httpx.get(f"{server.url}/model").json()["latency"]
            return {
                "ready": "yes",
                "largest batch explained": max(each["batch"] for each in latency if each["graph"] == "explain"),
                "images/s": round(figures["images_per_s"]),
                "failed": round(figures["failed"]),
                "MiB of the GPU": round(used_mib() - before),
                "last line of its log": last_line(server.output()),
            }
    except RuntimeError as error:
        return {"ready": "no", "last line of its log": last_line(error.__notes__[0])}


@contextmanager
def all_but(mebibytes: int) -> Iterator[None]:
    """Another process has what is free of the GPU's memory, and leaves so much."""
    command = [sys.executable, "-c", HOLDER, str(mebibytes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        yield
        holder.communicate()


def last_line(log: str) -> str:
    """Without colours and time, and not longer than a table can hold."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in log.strip().splitlines()]
    return lines[-1][-160:].replace("|", "/") if lines else ""
