"""The image, built from the Dockerfile and run without a daemon, as with `docker run --read-only`, without /tmp."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.server import Server, free_port, is_ready, started

NAME = "vit-serve-test"
CHECKPOINT = "tests/golden/checkpoints/huggingface-vit"
pytestmark = pytest.mark.timeout(1500)  # the first build makes its base image


class Image:
    """A built image and its root, to which nothing can be written."""

    def __init__(self, *, config: dict[str, Any], root: str) -> None:
        self.config = config
        self.starts = [*config["Entrypoint"], *config["Cmd"]]
        self._root = root

    def command(self, *command: str, port: int = 0, user: str = "") -> list[str]:
        """Run a command as its user and with its environment, in mounts of its own that end with it."""
        root, user, folder = self._root, user or self.config["User"], self.config["WorkingDir"]
        steps = [
            f"mount --bind {root} {root}",
            f"mount --rbind /dev {root}/dev",
            f"mount -t proc proc {root}/proc",
            f"mount -o remount,bind,ro {root}",
            f'exec chroot --userspec={user} {root} env -i "$@"',
        ]
        inside = ["sh", "-c", f'cd {folder} && exec "$@"', "sh", *command]
        script = ["sh", "-c", " && ".join(steps), "sh"]
        return ["unshare", "--mount", *script, *self.config["Env"], f"VIT_PORT={port}", *inside]


@pytest.fixture(scope="module")
def image(containers: Path) -> Iterator[Image]:
    with built(containers, NAME, ".") as image:
        yield image


@contextmanager
def built(containers: Path, name: str, *options: str | Path) -> Iterator[Image]:
    if os.geteuid() != 0:
        pytest.skip("images are built and mounted by root")
    subprocess.run([containers, "build", "-t", name, *options], check=True, stdout=subprocess.DEVNULL)
    config = json.loads(buildah("inspect", "--type", "image", f"localhost/{name}"))["Docker"]["config"]
    container = buildah("from", "--pull-never", f"localhost/{name}")
    try:
        yield Image(config=config, root=buildah("mount", container))
    finally:
        buildah("rm", container)


def buildah(*arguments: str) -> str:
    environment = {**os.environ, "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}
    result = subprocess.run(["buildah", *arguments], env=environment, check=True, capture_output=True, text=True)
    return result.stdout.strip()


@contextmanager
def served(image: Image, user: str = "") -> Iterator[tuple[Server, httpx.Client]]:
    """The service as the image starts it, ready."""
    port = free_port()
    with (
        started(image.command(*image.starts, port=port, user=user), port=port, ready=partial(is_ready, port)) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        yield server, client


@pytest.mark.parametrize("user", ["", "1000650000:0"], ids=["its own user", "one that a cluster chooses"])
def test_the_image_serves_is_healthy_and_stops_on_sigterm(image, star, user):
    with served(image, user) as (server, client):
        (result,) = client.post("/classify", content=star).json()["results"]
        assert result["predictions"][0]["label"] == "star"
        assert client.get(result["attention"]).headers["content-type"] == "image/png"
        assert client.get("/model").json()["provider"] == "OpenVINO"
        check = image.command(*image.config["Healthcheck"]["Test"][1:], port=server.port)
        assert subprocess.run(check).returncode == 0
        server.terminate()
        assert server.wait(60) == 0
        assert "Traceback" not in server.output()
        assert "telemetry" not in server.output()  # ONNX Runtime complains when it cannot keep any
    assert subprocess.run(check, stderr=subprocess.DEVNULL).returncode == 1


def test_the_image_has_no_torch_no_root_and_no_compiler(image):
    script = (
        "import importlib.util as u, os, shutil;"
        "wrong = ('torch', 'onnx', 'pytest', 'model', 'export', 'openvino_telemetry');"
        "print(os.getuid(), [m for m in wrong if u.find_spec(m)],"
        " [p for p in ('gcc', 'cc', 'make', 'curl') if shutil.which(p)])"
    )
    found = subprocess.run(image.command("python", "-c", script), check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "65532 [] []"


def test_an_image_is_made_from_a_checkpoint(containers, image, star, tmp_path):
    """On the image that has been built already, in place of its stage `service`, which takes most of the time."""
    context = tmp_path / "context"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split("\0")[:-1]:
        if Path(name).is_file():
            (context / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, context / name)
    shutil.copytree(CHECKPOINT, context / "mine")
    service = f"service=container-image://localhost/{NAME}"
    options = ["--target", "checkpoint", "--build-arg", "CHECKPOINT=mine", "--build-context", service, context]
    with built(containers, f"{NAME}-checkpoint", *options) as image, served(image) as (_, client):
        (result,) = client.post("/classify", content=star).json()["results"]
        assert {found["label"] for found in result["predictions"]} == {"cat", "dog", "newt", "owl", "yak"}
