"""A program in a process of its own, and waiting for what it does."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 60.0  # only a test that fails waits so long, so that it suffices on a busy machine


@contextmanager
def program(text: str, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A Python program whose output is read. It is killed at the end, also after a failure: `Popen` would wait."""
    with subprocess.Popen([sys.executable, "-c", text, *arguments], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def eventually(condition: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Wait for the condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)
