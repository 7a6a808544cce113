"""Programs that these tests need and a machine may lack."""

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.manifests import Resources, built
from tests.support.redis_server import running_redis

CONTAINERS = Path(os.environ.get("CONTAINERS", ""))


@pytest.fixture(scope="session")
def need() -> Callable[[str], str]:
    """The path of a program; skips without it."""

    def path(name: str) -> str:
        found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
        return found or pytest.skip(f"{name} is not installed")

    return path


@pytest.fixture
def build(need) -> Callable[[Path], Resources]:
    """What kubectl makes of a folder."""
    return partial(built, need("kubectl"))


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An empty Redis with the options of compose.yaml, but less memory."""
    options = ("--appendonly", "no", "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru")
    with running_redis(tmp_path_factory.mktemp("redis"), *options) as server:
        yield server.url


@pytest.fixture(scope="session")
def containers() -> Path:
    """A script that builds and runs images without a daemon: `build -t NAME`, `run NAME -e K=V`, `size NAME`."""
    if not CONTAINERS.is_file():
        pytest.skip("CONTAINERS=path/of/container.sh must name a script that builds images")
    return CONTAINERS.resolve()
