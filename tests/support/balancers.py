"""nginx and HAProxy with the shipped configuration: only addresses and file locations differ."""

import re
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.replicas import Replica, replicas
from tests.support.server import HOST, Server, free_port, started

REPLICAS = 3
CONFIGURATIONS = Path(__file__).parents[2] / "docker"

Start = Callable[[list[int], Path], AbstractContextManager[Server]]


def in_front(program: str, replicas: list[int], folder: Path) -> AbstractContextManager[Server]:
    """The program in front of the ports `replicas`; its files are in `folder`."""
    port = free_port()
    file = nginx_file if program == "nginx" else haproxy_file
    return listening(program, file(replicas, folder, port), port)


BALANCERS: dict[str, Start] = {program: partial(in_front, program) for program in ("nginx", "haproxy")}
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
    changes = {
        r"server replica:8000 resolve (.*);": "".join(rf"server 127.0.0.1:{one} \1;" + "\n" for one in replicas),
        r"listen 8080;": f"listen 127.0.0.1:{port};",
        r"pid /tmp/": f"daemon off; pid {folder}/",
    }
    return _changed("nginx.conf", folder, changes)


def haproxy_file(replicas: list[int], folder: Path, port: int) -> Path:
    servers = "\n    ".join(f"server replica{i} 127.0.0.1:{one}" for i, one in enumerate(replicas))
    return _changed("haproxy.cfg", folder, {r"server-template .*": servers, r"bind :8080": f"bind 127.0.0.1:{port}"})


def _changed(name: str, folder: Path, changes: dict[str, str]) -> Path:
    """The shipped file in another folder, with what is put in the place of each pattern."""
    text = (CONFIGURATIONS / name).read_text()
    for pattern, replacement in changes.items():
        text, count = re.subn(pattern, replacement, text)
        assert count == 1, f"{name} contains {pattern} {count} times"
    (folder / name).write_text(text)
    return folder / name


def listening(program: str, configuration: Path, port: int) -> AbstractContextManager[Server]:
    """nginx or HAProxy with this file, in its folder. Raises RuntimeError when it ends instead of listening."""

    def ready() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, port)) == 0

    path = shutil.which(program, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin")
    command = [path or program, *OPTIONS[program], str(configuration)]
    return started(command, port=port, ready=ready, folder=configuration.parent)
