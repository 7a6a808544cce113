"""What the service does where the GPU's memory is short: at its start, and while it serves."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.benchmarks.pictures import classify_jpeg
from tests.benchmarks.record import Row, Rows
from tests.benchmarks.server import PATIENT, running
from tests.gpu.card import used_mib
from tests.gpu.place import Place, Tables

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
    at_start: Rows = []
    for name, bundle in place.bundles("b16-fp16").items():
        for left in LEFT_MIB:
            with all_but(left):
                row = started(bundle.folder, place.seconds)
            at_start.append({"bundle": name, "short of": f"{left} MiB left", **row})
        for limit in LIMITS_MIB:
            row = started(bundle.folder, place.seconds, gpu_memory_bytes=limit * 2**20)
            at_start.append({"bundle": name, "short of": f"limit of {limit} MiB", **row})
        at_start.append({"bundle": name, "short of": "all, once ready", **taken_away(bundle.folder, place.seconds)})
    return {"memory": at_start}


def started(folder: Path, seconds: float, **settings: Any) -> Row:
    """Whether it starts, with which batches, what it says, and how many images it answers."""
    before = used_mib()
    try:
        with running(folder, device=DEVICE, **PATIENT, **settings) as server:
            request = classify_jpeg()
            figures = server.load(request, seconds / 2, connections=CONNECTIONS)
            about = httpx.get(f"{server.url}/model").json()
            return {
                "ready": "yes",
                "largest batch explained": max(
                    each["batch"] for each in about["latency"] if each["graph"] == "explain"
                ),
                "images/s": round(figures["images_per_s"]),
                "failed": round(figures["failed"]),
                "MiB of the GPU": round(used_mib() - before),
                "last line of its log": last_line(server.output()),
            }
    except RuntimeError as error:
        nothing = dict.fromkeys(("largest batch explained", "images/s", "failed", "MiB of the GPU"), 0)
        return {"ready": "no", **nothing, "last line of its log": last_line(error.__notes__[0])}


def taken_away(folder: Path, seconds: float) -> Row:
    """All memory that is free goes to another process while the service is under load."""
    before = used_mib()
    with running(folder, device=DEVICE, **PATIENT) as server:
        request = classify_jpeg()
        server.load(request, seconds / 4, connections=CONNECTIONS)
        of_service = used_mib() - before
        with all_but(LEAST_MIB):
            figures = server.load(request, seconds, connections=CONNECTIONS)
        return {
            "ready": "yes",
            "largest batch explained": "",
            "images/s": round(figures["images_per_s"]),
            "failed": round(figures["failed"]),
            "MiB of the GPU": round(of_service),
            "last line of its log": "",
        }


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
