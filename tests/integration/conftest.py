"""What these tests share: a server that asks for a key, for clients of others, and a classified image."""

import re
from collections.abc import Iterator
from functools import reduce
from typing import Any

import httpx
import pytest

from tests.support.processes import PATIENCE_S
from tests.support.server import running

KEY = "a-key"


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
def guarded_url() -> Iterator[str]:
    """The address of a server in a process of its own that asks for KEY."""
    with running(engine="onnxruntime", api_keys=KEY) as server:
        yield server.url


@pytest.fixture(scope="module")
def classified(client, star) -> dict:
    """What the app in this process answers to a star."""
    return client.post("/classify", content=star).json()["results"][0]


@pytest.fixture(scope="module")
def link(classified) -> str:
    """Of the star's maps."""
    return classified["attention"]
