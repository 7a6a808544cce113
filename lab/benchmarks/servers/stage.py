"""Servers that take turns: all are up, and all but the one that is measured are stopped (SIGSTOP).

Some use much CPU while idle, and starting one takes long.
"""

import asyncio
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from lab.benchmarks.load import RefusedError, ask
from lab.benchmarks.record import ROOT
from lab.benchmarks.servers.contenders import Arrangement
from lab.benchmarks.servers.weights import LABELS
from lab.benchmarks.under_load import timed_under_load, under_load
from tests.support.server import START_TIMEOUT_S, Server, family, free_port, started

WAKE_S = 0.5  # in which overdue timers run
WARM_UP_S = 1.0  # after a start, and in each turn: what was stopped for a minute has gone cold
CONNECTIONS = 16
FAILURES = (RuntimeError, OSError, subprocess.SubprocessError)

Found = tuple[dict[str, float], list[float]]  # figures, and the milliseconds of each good answer


class Stage(ExitStack):
    """`folder` has the weights, and gets what the servers write. Servers start at their first turn."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._up: dict[str, Server] = {}
        self.failed: dict[str, str] = {}  # why, by name; these have no more turns

    def turn(self, name: str, arrangement: Arrangement, seconds: float, **load: float) -> Found | None:
        """Its figures and good answers. None where the server has failed, now or before."""
        if name in self.failed:
            return None
        try:
            if name not in self._up:
                self._up[name] = self._started(arrangement)
            server = self._up[name]
            signal_all(server, signal.SIGCONT)
            try:
                time.sleep(WAKE_S)
                under_load(server, arrangement.request, WARM_UP_S, connections=CONNECTIONS)
                figures, milliseconds = timed_under_load(server, arrangement.request, seconds, **load)
            finally:
                signal_all(server, signal.SIGSTOP)
            return figures, milliseconds["200"]
        except FAILURES as error:
            why = "; ".join([str(error)[-500:], *getattr(error, "__notes__", [])])
            self.failed[name] = why.replace(f"{ROOT}/", "")
            print(f"{name} ({arrangement.says}) has failed and is left out: {self.failed[name]}")
            return None

    def _started(self, arrangement: Arrangement) -> Server:
        """It is woken before it has to end."""
        try:
            server = self.enter_context(up(arrangement, self._folder))
        except FAILURES:  # PyTriton, for one, gives the model a second to answer it
            server = self.enter_context(up(arrangement, self._folder))
        self.callback(signal_all, server, signal.SIGCONT)
        return server


def signal_all(server: Server, number: signal.Signals) -> None:
    for pid in family(server.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@contextmanager
def up(arrangement: Arrangement, weights: Path) -> Iterator[Server]:
    """The server, warm and checked: it gives the labels of the weights. Raises RuntimeError with the end of its log."""
    if not arrangement.python.exists():
        raise RuntimeError("it is not installed: `make bench-servers` installs it")
    port = free_port()
    folder = weights / f"run-{port}"
    folder.mkdir(exist_ok=True)
    environment = {"PYTHONPATH": str(ROOT), "VIT_BENCH_WEIGHTS": str(weights), "TMPDIR": str(folder)}
    environment |= {arrangement.port_variable: str(port), **arrangement.variables}
    answers: list[bytes] = []

    def ready() -> bool:
        with suppress(RefusedError, OSError, asyncio.IncompleteReadError, TimeoutError):
            answers.append(asyncio.run(asyncio.wait_for(ask(port, arrangement.request), START_TIMEOUT_S)))
        return bool(answers)

    command = [str(arrangement.python), *arrangement.arguments]
    with started(command, port=port, ready=ready, folder=folder, **environment) as server:
        check(answers[0], (weights / LABELS).read_text().splitlines(), exact=arrangement.exact)
        under_load(server, arrangement.request, WARM_UP_S, connections=CONNECTIONS)
        yield server


def check(answer: bytes, expected: list[str], *, exact: bool) -> None:
    """Raises RuntimeError if the first label is not the one that PyTorch finds.

    A random network has no clear favourite, so where weights are rounded it is enough that three of the five labels are
    PyTorch's: of a thousand.
    """
    found = re.findall(r"class \d+", answer.decode(errors="replace"))[: len(expected)]
    if (exact and found[:1] != expected[:1]) or len(set(found) & set(expected)) < 3:
        raise RuntimeError(f"it answered {answer[:1000]!r}, but the likeliest labels are {', '.join(expected)}")
