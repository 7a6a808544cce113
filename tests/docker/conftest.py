"""Programs that these tests need and a machine may lack."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.benchmarks.server import free_port

CONTAINERS = Path(os.environ.get("CONTAINERS", ""))


@pytest.fixture(scope="session")
def need() -> Callable[[str], str]:
    """The path of a program; skips without it."""

    def path(name: str) -> str:
        found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
        return found or pytest.skip(f"{name} is not installed")

    return path


@pytest.fixture(scope="module")
def redis_url(need: Callable[[str], str]) -> Iterator[str]:
    """An empty Redis with the options of compose.yaml, but less memory."""
    port = free_port()
    options = ["--save", "", "--appendonly", "no", "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"]
    command = [need("redis-server"), "--bind", "127.0.0.1", "--port", str(port), *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="session")
def containers() -> Path:
    """A script that builds and runs images without a daemon: `build -t NAME`, `run NAME -e K=V`, `size NAME`."""
    if not CONTAINERS.is_file():
        pytest.skip("nothing here builds images: CONTAINERS=path/of/container.sh says what does")
    return CONTAINERS.resolve()
