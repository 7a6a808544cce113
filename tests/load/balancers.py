"""nginx and HAProxy with the shipped configuration: only addresses and file locations differ."""

import re
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.benchmarks.load import HOST
from tests.benchmarks.server import Server, free_port, started
from tests.load.replicas import Replica, replicas

REPLICAS = 3
CONFIGURATIONS = Path(__file__).parents[2] / "docker"

Start = Callable[[list[int], Path], AbstractContextManager[Server]]


def nginx(replicas: list[int], folder: Path) -> AbstractContextManager[Server]:
    """nginx in front of the ports `replicas`; its files are in `folder`."""
    port = free_port()
    return listening("nginx", nginx_file(replicas, folder, port), port)


def haproxy(replicas: list[int], folder: Path) -> AbstractContextManager[Server]:
    """HAProxy in front of the ports `replicas`, once it has found them ready."""
    port = free_port()
    return listening("haproxy", haproxy_file(replicas, folder, port), port)


BALANCERS: dict[str, Start] = {"nginx": nginx, "haproxy": haproxy}
OPTIONS = {"nginx": ("-e", "stderr", "-p", ".", "-c"), "haproxy": ("-db", "-f")}


@contextmanager
def balanced(start: Start, count: int = REPLICAS, /, **settings: Any) -> Iterator[tuple[Server, list[Replica]]]:
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


def listening(program: str, configuration: Path, port: int) -> AbstractContextManager[Server]:
    """nginx or HAProxy with this file, in its folder. Raises RuntimeError when it ends instead of listening."""

    def ready() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, port)) == 0

    path = shutil.which(program, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin")
    command = [path or program, *OPTIONS[program], str(configuration)]
    return started(command, port=port, ready=ready, folder=configuration.parent)
