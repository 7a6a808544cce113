"""Notices a process that works too long."""

import asyncio
import select
import time
from pathlib import Path

from app.images.worker import Worker

CHECKS = 10  # per time limit
MAX_WALL_FACTOR = 5  # times the time limit, for a process that is kept waiting for a processor
ASLEEP = "STt"  # states of proc_pid_stat(5) in which a process waits for another, or is stopped


class Watch:
    """Kills a worker that works too long at a request. What counts is the time that it computes, and the time that it
    sleeps. Two things do not count:

    - The time that it waits for a processor, up to a bound: it has a low priority, and a large image beside a busy
      model is no hang.
    - The time that it waits for this process, which sends and reads late when its event loop is held up.

    No clock on the wall is read, but checks are counted: after a pause of any length, of the event loop or of the whole
    machine, the next check counts as much as every other, and the worker has the rest of its time.
    """

    def __init__(self, worker: Worker, *, timeout_s: float) -> None:
        assert worker.connection
        self._worker = worker
        self._process = worker.process  # it has none any more when its fork server has ended
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._ours = select.poll()
        self._ours.register(worker.connection, select.POLLOUT)
        self._cpu_s_before = _cpu_seconds(self._process)
        self._asleep_s = 0.0
        self._checks = 0
        self.timed_out = False
        self._arm()

    def sent(self) -> None:
        """The worker has all of the request: from now on it is waited for."""
        assert self._worker.connection
        self._ours.modify(self._worker.connection, select.POLLIN)

    def stop(self) -> None:
        self._timer.cancel()

    def _arm(self) -> None:
        self._timer = self._loop.call_later(self._timeout_s / CHECKS, self._check)

    def _check(self) -> None:
        if not self._ours.poll(0):  # else it waits for this process, or has ended, which its reader will notice
            self._checks += 1
            if _state(self._process) in ASLEEP:
                self._asleep_s += self._timeout_s / CHECKS
            worked_s = _cpu_seconds(self._process) - self._cpu_s_before + self._asleep_s
            if worked_s >= self._timeout_s or self._checks >= MAX_WALL_FACTOR * CHECKS:
                self.timed_out = True
                self._worker.kill()
                return
        self._arm()


def _cpu_seconds(process: int) -> float:
    try:
        return time.clock_gettime((~process << 3) | 2)  # the clock of clock_getcpuclockid(3) on Linux
    except OSError:
        return 0.0


def _state(process: int) -> str:
    """The letter of proc_pid_stat(5); S, asleep, where there is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "S"
