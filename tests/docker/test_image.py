"""The image, built from the Dockerfile and run without a daemon."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.benchmarks.server import free_port

IMAGE = "vit-serve-test"
BUILDAH = {**os.environ, "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}
pytestmark = pytest.mark.timeout(1500)  # the first build makes its base image

Image = Callable[..., list[str | Path]]


@pytest.fixture(scope="module")
def image(containers: Path) -> Image:
    """How to run a command in the built image: `image("python", "-c", "...", port="8001")`."""
    if os.geteuid() != 0:
        pytest.skip("images are built as root")
    subprocess.run([containers, "build", "-t", IMAGE, "."], check=True, stdout=subprocess.DEVNULL)

    def command(*arguments: str, **variables: str) -> list[str | Path]:
        settings = [part for name, value in variables.items() for part in ("-e", f"VIT_{name.upper()}={value}")]
        return [containers, "run", IMAGE, *settings, *(["--", *arguments] if arguments else [])]

    return command


def output(command: list[str | Path]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def served(command: list[str | Path], port: int) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """The service in a container, ready. At the end it is told to stop."""
    process = subprocess.Popen(command)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            until = time.monotonic() + 60
            while not ready(client):
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.1)
            yield process, client
    finally:
        process.terminate()
        process.wait(60)


def ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").is_success
    except httpx.TransportError:
        return False


def test_it_serves_and_stops_when_told(image, star):
    port = free_port()
    with served(image(port=str(port)), port) as (process, client):
        (result,) = client.post("/classify", content=star).json()["results"]
        assert result["predictions"][0]["label"] == "star"
        assert client.get(result["attention"]).headers["content-type"] == "image/png"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_it_has_no_torch_no_root_and_nothing_to_compile_with(image):
    script = (
        "import importlib.util as u, os, shutil;"
        "print(os.getuid(), [m for m in ('torch', 'onnx', 'pytest', 'model', 'export') if u.find_spec(m)],"
        " [p for p in ('gcc', 'cc', 'make', 'curl') if shutil.which(p)],"
        " [d for d in ('/srv', '/venv', '/bundle') if os.access(d, os.W_OK)])"
    )
    assert output(image("python", "-c", script)) == "65532 [] [] []"


def test_a_damaged_bundle_keeps_it_from_starting(image):
    script = (
        "cp -r /bundle /tmp/bundle && printf x >> /tmp/bundle/weights.bin && VIT_BUNDLE=/tmp/bundle exec python -m app"
    )
    result = subprocess.run(image("sh", "-c", script), capture_output=True, text=True)
    assert result.returncode == 3, result.stderr
    assert "weights.bin" in result.stderr
    assert "Traceback" not in result.stderr


def test_it_starts_by_exec_and_asks_for_readiness(image):
    config = configuration()
    assert config["Cmd"] == ["python", "-m", "app"]
    assert config["StopSignal"] == "SIGTERM"
    assert config["User"] == "65532:65532"
    assert config["Healthcheck"]["Test"][0] == "CMD"
    assert config["Labels"]["org.opencontainers.image.title"] == "vit-serve"


def test_it_needs_no_place_to_write_and_is_healthy(image, star):
    """As with `--read-only`, and without a /tmp: the root is mounted so, and the service started in it as its user."""
    port = free_port()
    with read_only_root() as enter:
        with served(enter(configuration()["Cmd"], port), port) as (_, client):
            assert client.post("/classify", content=star).status_code == 200
            check = enter(configuration()["Healthcheck"]["Test"][1:], port)
            assert subprocess.run(check).returncode == 0
        assert subprocess.run(check, stderr=subprocess.DEVNULL).returncode == 1


def configuration() -> dict[str, Any]:
    config: dict[str, Any] = json.loads(buildah("inspect", "--type", "image", f"localhost/{IMAGE}"))["Docker"]["config"]
    return config


@contextmanager
def read_only_root() -> Iterator[Callable[[list[str], int], list[str | Path]]]:
    """How to run a command on a port in the image's root, mounted read-only in a name space of its own."""
    config = configuration()
    user = config["User"]
    container = buildah("from", "--pull-never", f"localhost/{IMAGE}")
    try:
        root = buildah("mount", container)

        def enter(command: list[str], port: int) -> list[str | Path]:
            mounts = (
                f"mount --rbind /dev {root}/dev && mount -t proc proc {root}/proc && mount --bind {root} {root}.ro"
                f" && mount --rbind {root}/dev {root}.ro/dev && mount --rbind {root}/proc {root}.ro/proc"
                f' && mount -o remount,bind,ro {root}.ro && exec chroot --userspec={user} {root}.ro env -i "$@"'
            )
            return [
                "unshare", "--mount", "sh", "-c", mounts, "sh", *config["Env"], f"VIT_PORT={port}",
                "sh", "-c", f'cd {config["WorkingDir"]} && exec "$@"', "sh", *command,
            ]  # fmt: skip

        Path(f"{root}.ro").mkdir()
        yield enter
        Path(f"{root}.ro").rmdir()
    finally:
        buildah("rm", container)


def buildah(*arguments: str) -> str:
    result = subprocess.run(["buildah", *arguments], env=BUILDAH, check=True, capture_output=True, text=True)
    return result.stdout.strip()
