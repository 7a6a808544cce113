"""The real server in a process of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

from tests.benchmarks.server import START_TIMEOUT_S, free_port, is_ready

HOST = "127.0.0.1"


class Process(subprocess.Popen[bytes]):
    """`python -m module` with VIT_* variables. It is killed at the end of a `with` block, also after a failure.

    Its output goes to a file, because a process whose pipe is full waits until it is read.
    """

    def __init__(self, *, module: str = "app", **variables: str) -> None:
        """`port="8000"` is VIT_PORT."""
        environment = {**os.environ, "VIT_DEVICE": "cpu", **{f"VIT_{k.upper()}": v for k, v in variables.items()}}
        self._output = NamedTemporaryFile()  # noqa: SIM115
        super().__init__([sys.executable, "-m", module], env=environment, stdout=self._output, stderr=self._output)

    def output(self) -> str:
        """All that it has written so far."""
        return Path(self._output.name).read_text()

    def wait_until_ready(self, port: int) -> None:
        """Raises RuntimeError with its output if it ends instead."""
        eventually(lambda: self.poll() is not None or is_ready(port), START_TIMEOUT_S)
        if self.returncode is not None:
            raise RuntimeError(f"the server ended with {self.returncode}: {self.output()}")

    def __exit__(self, *error: object) -> None:
        self.end()

    def end(self) -> None:
        self.kill()
        self.wait()
        self._output.close()


@contextmanager
def program(text: str, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A Python program whose output is read. It is killed at the end, also after a failure: `Popen` would wait."""
    with subprocess.Popen([sys.executable, "-c", text, *arguments], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def served(*, module: str = "app", **variables: str) -> Iterator[tuple[Process, str]]:
    """A server that is ready, and its address. It is killed at the end."""
    port = free_port()
    with Process(module=module, port=str(port), **variables) as process:
        process.wait_until_ready(port)
        yield process, f"http://{HOST}:{port}"


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for the condition. Only a test that fails waits for `seconds`, so they suffice on a busy machine."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)
