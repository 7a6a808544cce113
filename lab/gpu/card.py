"""The NVIDIA GPU as its driver describes it, and how long runs on it take."""

import statistics
import subprocess
import time
from collections.abc import Callable

MOST_RUNS = 2000


def describe() -> str:
    return _ask("name,driver_version,memory.total,clocks.sm,power.limit")


def used_mib() -> float:
    """Memory in use on the GPU, of all processes."""
    return float(_ask("memory.used").split()[0])


def milliseconds(run: Callable[[], object], seconds: float) -> float:
    """Median of many runs, each of which waits for the GPU; the first three do not count."""
    times: list[float] = []
    while len(times) < 13 or (sum(times) < seconds and len(times) < MOST_RUNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times[3:])


def _ask(fields: str) -> str:
    """Of the first GPU; empty where there is none."""
    command = ["nvidia-smi", "--id=0", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (FileNotFoundError, subprocess.CalledProcessError):
        return "0 (no GPU)"
