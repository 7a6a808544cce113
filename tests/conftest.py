"""What tests of several kinds share: the served demo model, pictures as bytes, and a small exported bundle."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from filelock import FileLock
from hypothesis import HealthCheck, settings
from PIL import Image

from app.bundle import Precision
from app.lifecycle import Lifecycle
from app.main import create_app
from app.settings import DEMO_BUNDLE, Settings
from app.telemetry.metrics import Metrics
from app.telemetry.request_state import RequestState
from model.shapes import LABELS, draw
from tests.catalogue import case
from tests.support.edited import copied
from tests.support.redis_server import RedisServer, running_redis
from tests.support.server import running

Once = Callable[[str, Callable[[Path], object]], Path]


def pytest_configure() -> None:
    """Python keeps bytecode here even if the environment forbids it: without it each program compiles its libraries
    again. Hypothesis does not mind how long an example takes, which says as much of the machine as of the code.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads that wait for each other on a busy machine cost minutes
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(".pytest_cache/bytecode").absolute())
    settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("busy machine")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """For `-n auto`, one process more than processors: some tests wait. With many more, they wait too long."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else (os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With TESTS_MAY_SKIP=no a test that cannot run has failed: CI installs all that it needs."""
    report = yield
    if report.skipped and os.environ.get("TESTS_MAY_SKIP") == "no":
        report.outcome = "failed"
    return report


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The event loop of async tests and fixtures."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def quick() -> Iterator[None]:
    """With QUICK=yes, as in `make quick`, a test is skipped as soon as it exports, trains or starts a program."""
    if os.environ.get("QUICK") != "yes":
        yield
        return
    import torch

    def skip(*arguments: object, **options: object) -> None:
        pytest.skip("`make quick` exports nothing, trains nothing and starts no program")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", skip)
        patch.setattr(torch.export, "export", skip)
        patch.setattr(torch.Tensor, "backward", skip)
        yield


@pytest.fixture(scope="session", autouse=True)
def operators_read_once() -> Iterator[None]:
    """torch reads its table of operators once in a process, not for each export: a tenth of the time."""
    if "export.trace" not in sys.modules:  # no test of this run exports
        yield
        return
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(cache(ONNXRegistry.from_torchlib)))
        yield


@pytest.fixture(scope="session")
def encode() -> Callable[..., bytes]:
    """Encode a picture: `encode(image, "PNG", **options)`."""
    return case.encode


@pytest.fixture(scope="session")
def star() -> bytes:
    """A JPEG of a star, 320 x 240."""
    picture = draw(np.random.default_rng(11), size=(320, 240), label=LABELS.index("star"))
    return case.encode(Image.fromarray(picture.pixels), "JPEG", quality=90)


@pytest.fixture(scope="session")
def hang_up() -> Callable[..., list[Any]]:
    """Ask, and leave when the image is in work: `hang_up(app, path, body)` is what is sent nevertheless.

    With `whole=False` more of the body should have come.
    """

    def hang_up(app: FastAPI, path: str, body: bytes = b"", *, method: str = "POST", whole: bool = True) -> list[Any]:
        messages = [{"type": "http.request", "body": body, "more_body": not whole}]
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "headers": [], "http_version": "1.1", "scheme": "http", "server": ("t", 80), "client": ("t", 1),
        }  # fmt: skip

        state, send = RequestState.of(scope), AsyncMock()

        async def receive():
            if not messages:
                state.leave()
                await asyncio.Event().wait()
            return messages.pop()

        async def ask():
            asked = asyncio.ensure_future(app(scope, receive, send))
            while whole and not app.state.services.admission.images:
                await asyncio.sleep(0)
            if whole:
                state.leave()
            await asked

        asyncio.run(ask())
        return send.await_args_list

    return hang_up


@pytest.fixture(scope="session")
def serve() -> Callable[..., TestClient]:
    """A client of an app in this process: `with serve(max_batch=2) as client`. It computes in ONNX Runtime unless the
    settings say otherwise, which opens a bundle in a fourth of the time.
    """

    def client(**settings: Any) -> TestClient:
        app = create_app(Settings(**{"device": "cpu", "engine": "onnxruntime", **settings}))
        return TestClient(app, raise_server_exceptions=False)

    return client


@pytest.fixture(scope="session")
def client(serve: Callable[..., TestClient]) -> Iterator[TestClient]:
    """The demo bundle with default settings, for tests that leave it as they find it."""
    with serve(engine="auto") as client:
        yield client


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """The address of a server in a process of its own, with default settings."""
    with running() as server:
        yield server.url


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def lifecycle() -> Lifecycle:
    return Lifecycle()


@pytest.fixture
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Started; what it holds is gone with the test."""
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Write a file or folder once, however many processes run tests: `once(name, write)` is its path."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of all processes of this run

    def path(name: str, write: Callable[[Path], object]) -> Path:
        out = folder / f"once-{name}"
        with FileLock(f"{out}.lock"):
            if not out.exists():
                write(out)
        return out

    return path


@pytest.fixture
def bundle_with(tmp_path: Path) -> Callable[..., Path]:
    """A copy of a bundle, the demo's unless it is given, with other facts: `bundle_with(score="sigmoid")`."""

    def path(source: Path = DEMO_BUNDLE, **facts: Any) -> Path:
        return copied(tmp_path / "bundle", source, **facts)

    return path


def toy_bundle(out: Path, *, precision: Precision = "fp32", knows_images: bool = False, **changes: Any) -> None:
    from export.bundle import write_bundle
    from tests.support.familiar import knowing
    from tests.support.toy import toy_checkpoint

    toy = toy_checkpoint(**changes)
    write_bundle(knowing(toy) if knows_images else toy, out, replace=False, precision=precision)


@pytest.fixture(scope="session")
def oblong_bundle(once: Once) -> Path:
    """An exported toy model with a 3 x 5 grid, seven labels and random weights."""
    return once("oblong", toy_bundle)


@pytest.fixture(scope="session")
def headless_bundle(once: Once) -> Path:
    """A toy model with a 3 x 5 grid, random weights and no head."""
    return once("headless", partial(toy_bundle, num_classes=0))


@pytest.fixture
def already_traced(oblong_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export of that toy takes the graph from that bundle. All else of it is done, such as the check of parity."""
    from tests.support.traced import graph_in

    monkeypatch.setattr("export.bundle.trace", lambda graph: graph_in(oblong_bundle, graph))


@pytest.fixture(scope="session")
def golden_bundle(once: Once) -> Callable[[Path], Path]:
    """The exported bundle of a folder of tests/golden/checkpoints."""

    def write(case: Path, out: Path) -> None:
        from export.bundle import write_bundle
        from tests.golden.test_checkpoints import load

        write_bundle(load(case), out, replace=False)

    return lambda case: once(f"golden-{case.name}", partial(write, case))


@pytest.fixture(scope="session")
def text_bundle(once: Once) -> Callable[[Path], Path]:
    """The same with its text tower."""

    def write(case: Path, out: Path) -> None:
        from export.bundle import write_bundle
        from model.checkpoints import load_checkpoint

        write_bundle(load_checkpoint(case, text=True), out, replace=False)

    return lambda case: once(f"text-{case.name}", partial(write, case))
