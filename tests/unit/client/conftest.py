import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

Answered = tuple[int, dict[str, str], bytes]
TYPE = "urn:vit-serve:problem:"
MODEL = {"name": "m", "digest": "0123456789abcdef"}
SHOWN = {"width": 1, "height": 1, "format": "PNG"}


def as_json(content: object, status: int = 200) -> Answered:
    return status, {}, json.dumps(content).encode()


def problem(status: int, kind: str = "unusable-image") -> dict[str, Any]:
    return {"type": TYPE + kind, "title": "Refused", "status": status, "detail": f"This is {kind}."}


class Service:
    """Answers in place of a server. `answers` has for each path an answer, or a function that gives the result of an
    image; `whole` has functions that give the answer itself, and `first` has answers that come before. `asked` has the
    path, images and API key of every request, `ways` the path and parameters of each.
    """

    url = "http://service.test/birds"  # of one of several models behind an address

    def __init__(self) -> None:
        self.model = {**MODEL, "manifest": {"features": 2, "labels": ["a", "b", "c"]}}
        self.first: list[Answered] = []
        self.asked: list[tuple[str, list[bytes], str | None]] = []
        self.ways: list[tuple[str, httpx.QueryParams]] = []
        self.answers: dict[str, Answered | Callable[[bytes], dict[str, Any]]] = {
            "/model": as_json(self.model),
            "/classify": self.result,
            "/embed": lambda image: {"embedding": [len(image), 1.0], "image": SHOWN},
        }
        self.whole: dict[str, Callable[[list[bytes]], Answered]] = {}  # the answer to all images of a request
        self.too_large = 2**40  # bytes of a request that a proxy refuses

    def say(self, **facts: Any) -> None:
        """Of the model, in its manifest."""
        self.model["manifest"] |= facts
        self.answers["/model"] = as_json(self.model)

    def draw(self) -> None:
        """Keep the maps of every image, as one."""
        self.answers["/attention/kept"] = (200, {"Content-Type": "image/png"}, b"drawn")
        self.answers["/classify"] = lambda image: self.result(image) | {"id": "kept"}

    def answer(self, request: httpx.Request) -> httpx.Response:
        assert (request.url.host, request.url.path[:7]) == ("service.test", "/birds/")
        path, body = request.url.path.removeprefix("/birds"), request.read()
        images = [part.split(b"\r\n\r\n", 1)[1] for part in body.split(b"\r\n--")[:-1]]
        self.asked.append((path, images, request.headers.get("X-API-Key")))
        self.ways.append((path, request.url.params))
        if len(body) > self.too_large:
            return httpx.Response(413, content=iter([b"Too large"]))
        answer = self.first.pop(0) if self.first else self.answers[path]
        if path in self.whole:
            answer = self.whole[path](images)
        status, headers, content = answer if isinstance(answer, tuple) else self.each(answer, images)
        return httpx.Response(status, headers=headers, content=iter([content]))  # as it comes from a network

    def result(self, image: bytes) -> dict[str, Any]:
        """The label is the image itself, or its start, so an answer that went to another image shows."""
        return {"predictions": [{"label": image[:20].decode("latin-1"), "index": 0, "score": 0.5}], "image": SHOWN}

    def each(self, outcome: Callable[[bytes], dict[str, Any]], images: list[bytes]) -> Answered:
        """As the service does: if none could be used, the first problem is the answer."""
        results = [outcome(image) for image in images]
        if all("error" in result for result in results):
            found = results[0]["error"]
            return as_json(found, found["status"])
        return as_json({"model": self.model, "results": results})


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    service = Service()
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda _, request: service.answer(request))
    return service
