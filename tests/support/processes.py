"""The real server, or another program, in a process of its own."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.benchmarks.server import Process, free_port


@contextmanager
def program(text: str, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A Python program whose output is read. It is killed at the end, also after a failure: `Popen` would wait."""
    with subprocess.Popen([sys.executable, "-c", text, *arguments], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def served(**settings: Any) -> Iterator[Process]:
    """A server that is ready, with the parameters of Process."""
    with Process(port=free_port(), **{"device": "cpu", **settings}) as process:
        process.wait_until_ready()
        yield process


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for the condition. Only a test that fails waits for `seconds`, so they suffice on a busy machine."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)
