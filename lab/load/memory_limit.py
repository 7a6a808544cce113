"""`python -m lab.load.memory_limit [REQUESTS]`: does a replica stay within the memory limit that Kubernetes gives it?

The server runs in a control group with the limit of docker/kubernetes/base/deployment.yaml, under mixed traffic without
a pause, with maps in its own memory. The table goes to lab/load/README.md. It needs root, for the control group.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import yaml
from tqdm import tqdm

from app.settings import DEMO_BUNDLE
from lab.benchmarks.__main__ import publish
from lab.benchmarks.random_model import random_bundle
from lab.benchmarks.record import Row, Rows
from lab.load.background import repeated
from lab.load.mixture import Mixture
from tests.support.processes import eventually
from tests.support.server import PATIENT, running

REQUESTS = 1000
CONNECTIONS = 16
TIME_LIMIT_S = 1200.0  # for one bundle
SAMPLE_EVERY_S = 0.05
MIB = 2**20
DEPLOYMENT = Path(__file__).parents[2] / "docker/kubernetes/base/deployment.yaml"
VARIANTS = (("B/16", 1), ("L/16", 1), ("L/16", 2))  # and how many times the shipped limit
CGROUP = Path("/sys/fs/cgroup")
ENTER = 'mount --bind "$1" "$2" && echo $$ > "$2/cgroup.procs" && shift 2 && exec "$@"'


@dataclass(frozen=True)
class Group:
    """A control group for memory, of version 1 or 2."""

    mount: Path
    folder: Path

    @property
    def allocated(self) -> int:
        """Bytes of all its processes without the page cache, which the kernel can take back."""
        numbers = dict(line.split() for line in (self.folder / "memory.stat").read_text().splitlines())
        return int(numbers["rss"] if "rss" in numbers else numbers["anon"])

    @property
    def killed(self) -> int:
        """How many processes the kernel has killed because memory was short."""
        file = next(file for name in ("memory.oom_control", "memory.events") if (file := self.folder / name).exists())
        return int(dict(line.split() for line in file.read_text().splitlines())["oom_kill"])

    def command(self, command: list[str]) -> list[str]:
        """`command`, run inside the group, which it sees as its own root."""
        return ["unshare", "--mount", "sh", "-c", ENTER, "sh", str(self.folder), str(self.mount), *command]


@contextmanager
def limited(limit: int) -> Iterator[Group]:
    """A new group with a limit in bytes."""
    mount, file = CGROUP / "memory", "memory.limit_in_bytes"
    if not mount.is_dir():
        mount, file = CGROUP, "memory.max"
    group = Group(mount, mount / "vit-memory-limit")
    group.folder.mkdir()
    try:
        (group.folder / file).write_text(str(limit))
        yield group
    finally:
        eventually(lambda: not (group.folder / "cgroup.procs").read_text())
        group.folder.rmdir()


def shipped_limit() -> int:
    """Bytes that the deployment allows a replica."""
    (container,) = yaml.safe_load(DEPLOYMENT.read_text())["spec"]["template"]["spec"]["containers"]
    text: str = container["resources"]["limits"]["memory"]
    return int(text.removesuffix("Gi")) * 2**30


def row(name: str, bundle: Path, limit: int, requests: int) -> Row:
    settings = {**PATIENT, "request_timeout_s": 60}
    with limited(limit) as group, running(bundle, inside=group.command, **settings) as server:
        allocated = [group.allocated]
        traffic = Mixture(server.port, clients=CONNECTIONS, pause_s=0)
        with repeated(lambda: allocated.append(group.allocated), every_s=SAMPLE_EVERY_S):
            asyncio.run(traffic.run(time.monotonic() + TIME_LIMIT_S, requests=requests))
        latency = httpx.get(f"{server.url}/model").json()["latency"]
        return {
            "bundle": name,
            "limit, MiB": limit // MIB,
            "allocated when ready, MiB": allocated[0] // MIB,
            "peak, MiB": max(allocated) // MIB,
            "at the end, MiB": group.allocated // MIB,
            "largest batch": max(measured["batch"] for measured in latency),
            "requests": traffic.requests,
            "unexpected answers": json.dumps(traffic.wrong) if traffic.wrong else "none",
            "killed": group.killed,
        }


def measure(requests: int) -> Rows:
    limit = shipped_limit()
    with tempfile.TemporaryDirectory() as temporary:
        rows = [row("demo", DEMO_BUNDLE, limit, requests)]
        for variant, times in tqdm(VARIANTS, desc="bundles"):
            bundle = random_bundle(Path(temporary), variant)
            rows.append(row(f"ViT-{variant}, fp32", bundle, times * limit, requests))
        return rows


if __name__ == "__main__":
    publish("memory_limit", measure(int(sys.argv[1]) if sys.argv[1:] else REQUESTS))
