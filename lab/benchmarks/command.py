"""A command as a person types it, timed as a whole."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Used(NamedTuple):
    seconds: float
    cpu_s: float


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Used:
    """Run it to its end and drop its output. `environment` replaces this process's. Raises RuntimeError if it fails."""
    start = time.perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"this failed: {' '.join(command)}")
    return Used(time.perf_counter() - start, used.ru_utime + used.ru_stime)
