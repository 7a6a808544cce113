"""Programs that these tests need and a machine may lack."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.manifests import FOLDER, Resources, built
from tests.support.redis_server import running_redis

CONTAINERS = Path(os.environ.get("CONTAINERS", ""))
KUSTOMIZATION = (FOLDER / "site/kustomization.yaml").read_text()
COMPONENTS = re.findall(r"^  # - \.\./(.+)$", KUSTOMIZATION, re.MULTILINE)  # that the site may have

Site = Callable[..., Resources]


@pytest.fixture(scope="session")
def need() -> Callable[[str], str]:
    """The path of a program; skips without it."""

    def path(name: str) -> str:
        found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
        return found or pytest.skip(f"{name} is not installed")

    return path


@pytest.fixture
def folder(tmp_path) -> Path:
    """A copy of all manifests."""
    return Path(shutil.copytree(FOLDER, tmp_path / "kubernetes"))


@pytest.fixture
def site(need, folder) -> Site:
    """What kubectl makes of a folder when the site has these components: `site("keys", of="canary")`."""
    kubectl = need("kubectl")

    def made(*components: str, base: str = "../base", of: str = "site") -> Resources:
        text = KUSTOMIZATION.replace("../base", base)
        for name in components:
            text = text.replace(f"  # - ../{name}\n", f"  - ../{name}\n")
        (folder / "site/kustomization.yaml").write_text(text)
        return built(kubectl, folder / of)

    return made


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
