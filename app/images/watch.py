"""Notices a process that works too long."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

MAX_WALL_FACTOR = 5  # times the time limit, for a process that is kept waiting for a processor


class Watch:
    """Kills a worker that works too long at a request. The time that it waits for a processor does not count, up to a
    bound: it has a low priority, and a large image beside a busy model is no hang.
    """

    def __init__(self, process: int, *, kill: Callable[[], None], timeout_s: float) -> None:
        self._process = process
        self._kill = kill
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + MAX_WALL_FACTOR * timeout_s
        self._cpu_s_before = _cpu_seconds(process)
        self.timed_out = False
        self._timer = self._loop.call_later(timeout_s, self._check)

    def stop(self) -> None:
        self._timer.cancel()

    def _check(self) -> None:
        left_s = self._timeout_s - (_cpu_seconds(self._process) - self._cpu_s_before)
        if _is_runnable(self._process) and left_s > 0 and self._loop.time() < self._deadline:
            self._timer = self._loop.call_later(max(left_s, 0.05), self._check)
            return
        self.timed_out = True
        self._kill()


def _cpu_seconds(process: int) -> float:
    try:
        return time.clock_gettime((~process << 3) | 2)  # the clock of clock_getcpuclockid(3) on Linux
    except OSError:
        return 0.0


def _is_runnable(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "R"
    except OSError:
        return False
