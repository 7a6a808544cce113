"""Maps, walls and reports on the demo model while the threads that draw are busy."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest


@pytest.mark.parametrize("path", ["", "/wall", "/report"])
def test_nothing_is_drawn_after_its_deadline_and_more_than_the_limit_are_refused(client, link, path, monkeypatch):
    drawings, go_on = client.app.state.services.drawings, threading.Event()
    with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patch:
        patch.setattr(drawings, "_pool", pool)
        pool.submit(go_on.wait, 60)  # in the only thread
        late = client.get(link + path, headers={"X-Request-Timeout": "0.1"})
        assert (late.status_code, late.json()["type"]) == (503, "urn:vit-serve:problem:deadline-exceeded")
        go_on.set()
        assert client.get(link + path).status_code == 200
    monkeypatch.setattr(drawings, "_places", threading.Semaphore(0))
    refused = client.get(link + path)
    assert (refused.status_code, refused.json()["type"]) == (503, "urn:vit-serve:problem:overloaded")
