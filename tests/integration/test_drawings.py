"""Maps, walls and reports on the demo model while the threads that draw are busy."""

import threading
from concurrent.futures import Future
from contextlib import contextmanager

import pytest


@pytest.fixture(scope="module")
def limited(serve):
    with serve(worker_threads=1, max_drawings=1) as client:
        yield client


@pytest.fixture(scope="module")
def link(limited, star) -> str:
    return limited.post("/classify", content=star).json()["results"][0]["attention"]


@contextmanager
def busy(client):
    """While the one thread that draws does something else."""
    go_on = threading.Event()
    waiting: Future[bool] = client.app.state.services.drawings._pool.submit(go_on.wait)
    try:
        yield
    finally:
        go_on.set()
        assert waiting.result(10)


@pytest.mark.parametrize("path", ["", "/wall", "/report"])
def test_nothing_is_drawn_after_its_deadline_and_more_than_the_limit_are_refused(limited, link, path, monkeypatch):
    with busy(limited):
        late = limited.get(link + path, headers={"X-Request-Timeout": "0.1"})
    assert (late.status_code, late.json()["type"]) == (503, "urn:vit-serve:problem:deadline-exceeded")
    assert limited.get(link + path).status_code == 200
    monkeypatch.setattr(limited.app.state.services.drawings, "_places", threading.Semaphore(0))
    refused = limited.get(link + path)
    assert (refused.status_code, refused.json()["type"]) == (503, "urn:vit-serve:problem:overloaded")
