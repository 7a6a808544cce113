"""The real server in a process of its own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

HOST = "127.0.0.1"
START_TIMEOUT_S = 60.0


def start(*, module: str = "app", **variables: str) -> subprocess.Popen[str]:
    """`python -m module` with VIT_* variables. The caller ends it."""
    environment = {**os.environ, "VIT_DEVICE": "cpu", **{f"VIT_{k.upper()}": v for k, v in variables.items()}}
    return subprocess.Popen(
        [sys.executable, "-m", module], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@contextmanager
def program(text: str, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A Python program whose output is read. It is killed at the end, also after a failure: `Popen` would wait."""
    with subprocess.Popen([sys.executable, "-c", text, *arguments], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def served(*, module: str = "app", **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server that is ready, and its address. It is killed at the end."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    process = start(module=module, port=str(port), **variables)
    base = f"http://{HOST}:{port}"
    try:
        wait_until_ready(process, base)
        yield process, base
    finally:
        process.kill()
        process.communicate()


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)


def wait_until_ready(process: subprocess.Popen[str], base: str) -> None:
    end = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}: {process.communicate()[0]}")
        try:
            if httpx.get(f"{base}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise TimeoutError("the server is not ready")
