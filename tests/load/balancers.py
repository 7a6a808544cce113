"""nginx and HAProxy with the shipped configuration: only addresses and file locations differ."""

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.benchmarks.server import free_port
from tests.load.replicas import Replica, replicas

REPLICAS = 3
CONFIGURATIONS = Path(__file__).parents[2] / "docker"


@dataclass(frozen=True)
class Balancer:
    port: int
    log: Path


Start = Callable[[list[int], Path], AbstractContextManager[Balancer]]


@contextmanager
def nginx(replicas: list[int], folder: Path) -> Iterator[Balancer]:
    """nginx in front of the ports `replicas`; its files are in `folder`."""
    port = free_port()
    with running_balancer(
        ["nginx", "-e", "stderr", "-p", str(folder), "-c", str(nginx_file(replicas, folder, port))], port, folder
    ) as b:
        yield b


@contextmanager
def haproxy(replicas: list[int], folder: Path) -> Iterator[Balancer]:
    """HAProxy in front of the ports `replicas`, once it has found them ready."""
    port = free_port()
    with running_balancer(["haproxy", "-db", "-f", str(haproxy_file(replicas, folder, port))], port, folder) as b:
        yield b


BALANCERS: dict[str, Start] = {"nginx": nginx, "haproxy": haproxy}


@contextmanager
def balanced(start: Start, count: int = REPLICAS, /, **settings: Any) -> Iterator[tuple[Balancer, list[Replica]]]:
    """`count` replicas behind a balancer; `store="redis://..."` is their VIT_STORE."""
    with (
        TemporaryDirectory() as folder,
        replicas(count, **settings) as running,
        start([replica.port for replica in running], Path(folder)) as balancer,
    ):
        yield balancer, running


def nginx_file(replicas: list[int], folder: Path, port: int) -> Path:
    text = (CONFIGURATIONS / "nginx.conf").read_text()
    text = _replaced(r"server replica:8000 resolve (.*);", lambda m: "".join(
        f"server 127.0.0.1:{replica} {m[1]};\n" for replica in replicas), text)  # fmt: skip
    text = _replaced(r"listen 8080;", lambda _: f"listen 127.0.0.1:{port};", text)
    text = _replaced(r"pid /tmp/", lambda _: f"daemon off; pid {folder}/", text)
    return _written(folder / "nginx.conf", text)


def haproxy_file(replicas: list[int], folder: Path, port: int) -> Path:
    text = (CONFIGURATIONS / "haproxy.cfg").read_text()
    text = _replaced(r"server-template .*", lambda _: "\n    ".join(
        f"server replica{i} 127.0.0.1:{replica}" for i, replica in enumerate(replicas)), text)  # fmt: skip
    text = _replaced(r"bind :8080", lambda _: f"bind 127.0.0.1:{port}", text)
    return _written(folder / "haproxy.cfg", text)


def _replaced(pattern: str, replacement: Callable[[re.Match[str]], str], text: str) -> str:
    text, count = re.subn(pattern, replacement, text)
    assert count == 1, f"the configuration contains {pattern} {count} times"
    return text


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@contextmanager
def running_balancer(command: list[str], port: int, folder: Path) -> Iterator[Balancer]:
    """Raises RuntimeError with its log when it ends instead of listening."""
    log = folder / "log"
    program = shutil.which(command[0], path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin")
    with log.open("wb") as out:
        process = subprocess.Popen([program or command[0], *command[1:]], stdout=out, stderr=out)
    try:
        while not _listens(port):
            if process.poll() is not None:
                raise RuntimeError(log.read_text())
            time.sleep(0.02)
        yield Balancer(port=port, log=log)
    finally:
        process.terminate()
        process.wait(30)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
