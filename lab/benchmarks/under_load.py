"""The figures of a server, and its CPU time, while `lab.benchmarks.load` sends it requests from another process."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.support.server import Server

PATIENCE_S = 120.0  # that a load may take beyond its own seconds


def under_load(server: Server, request: bytes, seconds: float, **loop: float) -> dict[str, float]:
    """The figures of lab.benchmarks.load; `cpu_s`, the server's CPU seconds meanwhile; and `others`, the number of
    cores that unrelated processes used. `connections=N` is a closed loop, `rate=R` with a `seed` an open one.
    """
    return timed_under_load(server, request, seconds, **loop)[0]


def timed_under_load(
    server: Server, request: bytes, seconds: float, **loop: float
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """The figures of `under_load`, and the milliseconds of each answer by status."""
    command = [sys.executable, "-m", "lab.benchmarks.load", str(server.port), str(seconds), json.dumps(loop)]
    start, used, machine = time.perf_counter(), server.cpu_seconds(), busy_seconds()
    done = subprocess.run(command, input=request, capture_output=True, timeout=seconds + PATIENCE_S, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.decode())
    found, latencies = map(json.loads, done.stdout.splitlines())
    used, machine = server.cpu_seconds() - used, busy_seconds() - machine
    others = machine - used - found["generator_cpu_s"]
    return {**found, "cpu_s": used, "others": others / (time.perf_counter() - start)}, latencies


def busy_seconds() -> float:
    """CPU seconds of the whole machine so far."""
    user, nice, system, _, _, irq, softirq, *_ = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    return sum(map(int, (user, nice, system, irq, softirq))) / os.sysconf("SC_CLK_TCK")
