"""What these tests share: a server that asks for a key, for clients of others, and a classified image."""

import re
from collections.abc import Iterator
from functools import reduce
from typing import Any

import httpx
import pytest

from tests.support.engines import Watched
from tests.support.processes import PATIENCE_S
from tests.support.server import Process, free_port, running

KEY, KEY_IN_FILE = "a-key", "another-key"


def metric(port: int, name: str) -> float:
    """The number of a metric with these labels, at the server of this port; 0 before it is first counted."""
    text = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S).text
    return sum(map(float, re.findall(rf"^{re.escape(name)} (.+)$", text, re.MULTILINE)))


def check_problem(response: Any) -> None:
    """The response is RFC 9457, its detail is a sentence, and nothing internal leaks."""
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["type"].startswith("urn:vit-serve:problem:")
    assert problem["status"] == response.status_code
    assert problem["title"]
    assert problem["detail"].endswith(".")
    assert "Traceback" not in response.text
    known = ("multipart/form-data", "application/json", "/classify")
    assert "/" not in reduce(lambda detail, name: detail.replace(name, ""), known, problem["detail"])


@pytest.fixture
def in_onnx_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which opens a bundle in a fourth of the time of OpenVINO."""
    monkeypatch.setenv("VIT_ENGINE", "onnxruntime")


@pytest.fixture(scope="session")
def metrics_port() -> int:
    """Of the server that asks for a key."""
    return free_port()


@pytest.fixture(scope="session")
def guarded(tmp_path_factory, metrics_port) -> Iterator[Process]:
    """A server in a process of its own that asks for KEY or KEY_IN_FILE."""
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text(f"{KEY_IN_FILE}\n")
    with running(engine="onnxruntime", api_keys=KEY, api_keys_file=keys, metrics_port=metrics_port) as server:
        yield server


@pytest.fixture(scope="session")
def guarded_url(guarded) -> str:
    return guarded.url


@pytest.fixture(scope="module")
def classified(client, star) -> dict:
    """What the app in this process answers to a star."""
    return client.post("/classify", content=star).json()["results"][0]


@pytest.fixture(scope="module")
def link(classified) -> str:
    """Of the star's maps."""
    return classified["attention"]


@pytest.fixture
def watched(client, monkeypatch) -> Watched:
    """The engine of the app in this process. What it ran before is forgotten."""
    model = client.app.state.services.model
    monkeypatch.setattr(model, "engine", engine := Watched(model.engine))
    return engine
