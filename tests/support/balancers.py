"""nginx and HAProxy with the shipped configuration: only addresses and file locations differ."""

import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
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


def in_front_of_models(program: str, models: Mapping[str, list[int]], folder: Path) -> AbstractContextManager[Server]:
    """The same in front of several models, each with the ports of its replicas."""
    port = free_port()
    file = nginx_file_of_models if program == "nginx" else haproxy_file_of_models
    return listening(program, file(models, folder, port), port)


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
    return _changed("nginx.conf", folder, _nginx_servers("replica", replicas) | _nginx_place(folder, port))


def nginx_file_of_models(models: Mapping[str, list[int]], folder: Path, port: int) -> Path:
    (folder / "upstreams").mkdir()
    for file in (CONFIGURATIONS / "models/upstreams").iterdir():
        _changed(f"models/upstreams/{file.name}", folder / "upstreams", _nginx_servers(file.name, models[file.name]))
    return _changed("models/nginx.conf", folder, _nginx_place(folder, port))


def nginx_file_of_list(models: list[str], folder: Path, port: int) -> Path:
    """Of the pod that lists the models in Kubernetes."""
    (folder / "upstreams").mkdir()
    for name in models:
        (folder / "upstreams" / name).touch()
    return _changed("kubernetes/models/list.conf", folder, _nginx_place(folder, port))


def _nginx_servers(name: str, replicas: list[int]) -> dict[str, str]:
    servers = "".join(rf"server 127.0.0.1:{one} \1;" + "\n" for one in replicas)
    return {rf"server {name}:8000 resolve (.*);": servers}


def _nginx_place(folder: Path, port: int) -> dict[str, str]:
    """Its processes run as the user of the tests, who alone may read the folder."""
    user = "user root;" if os.geteuid() == 0 else ""
    return {r"listen 8080;": f"listen 127.0.0.1:{port};", r"pid /tmp/": f"daemon off; {user} pid {folder}/"}


def haproxy_file(replicas: list[int], folder: Path, port: int) -> Path:
    return _changed("haproxy.cfg", folder, _haproxy_servers("replica", replicas) | _haproxy_place(port))


def haproxy_file_of_models(models: Mapping[str, list[int]], folder: Path, port: int) -> Path:
    shutil.copy(CONFIGURATIONS / "models/names", folder)
    changes = _haproxy_place(port)
    for name, ports in models.items():
        changes |= _haproxy_servers(name, ports)
    return _changed("models/haproxy.cfg", folder, changes)


def _haproxy_servers(name: str, replicas: list[int]) -> dict[str, str]:
    servers = "\n    ".join(f"server replica{i} 127.0.0.1:{one}" for i, one in enumerate(replicas))
    return {rf"server-template replica 10 {name}:8000 .*": servers}


def _haproxy_place(port: int) -> dict[str, str]:
    return {r"bind :8080": f"bind 127.0.0.1:{port}"}


def _changed(name: str, folder: Path, changes: dict[str, str]) -> Path:
    """The shipped file in another folder, with what is put in the place of each pattern."""
    source, out = CONFIGURATIONS / name, folder / Path(name).name
    text = source.read_text().replace("/etc/nginx/", f"{folder}/")
    for pattern, replacement in changes.items():
        text, count = re.subn(pattern, replacement, text)
        assert count == 1, f"{name} contains {pattern} {count} times"
    out.write_text(text)
    return out


def listening(program: str, configuration: Path, port: int) -> AbstractContextManager[Server]:
    """nginx or HAProxy with this file, in its folder. Raises RuntimeError when it ends instead of listening."""

    def ready() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, port)) == 0

    path = shutil.which(program, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin")
    command = [path or program, *OPTIONS[program], str(configuration)]
    return started(command, port=port, ready=ready, folder=configuration.parent)
