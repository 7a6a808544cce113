"""The real server in a process of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

from tests.benchmarks.server import START_TIMEOUT_S, free_port, is_ready, variables_of

HOST = "127.0.0.1"


class Process(subprocess.Popen[bytes]):
    """`python -m module` on a port of loopback. It is killed at the end of a `with` block, also after a failure.

    Its output goes to a file, because a process whose pipe is full waits until it is read.
    """

    def __init__(self, *, module: str = "app", port: int = 0, **settings: object) -> None:
        """Settings are those of `variables_of`."""
        self.port = port
        self.url = f"http://{HOST}:{port}"
        variables = variables_of(**{"device": "cpu", "port": port, **settings})
        self._output = NamedTemporaryFile()  # noqa: SIM115
        super().__init__(
            [sys.executable, "-m", module], env=os.environ | variables, stdout=self._output, stderr=self._output
        )

    def output(self) -> str:
        """All that it has written so far."""
        return Path(self._output.name).read_text()

    def wait_until_ready(self) -> None:
        """Raises RuntimeError with its output if it ends instead."""
        eventually(lambda: self.poll() is not None or is_ready(self.port), START_TIMEOUT_S)
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
def served(*, module: str = "app", **settings: object) -> Iterator[Process]:
    """A server that is ready. It is killed at the end."""
    with Process(module=module, port=free_port(), **settings) as process:
        process.wait_until_ready()
        yield process


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for the condition. Only a test that fails waits for `seconds`, so they suffice on a busy machine."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)
