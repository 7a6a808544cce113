import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Answered = tuple[int, dict[str, str], bytes]
TYPE = "urn:vit-serve:problem:"


def problem(status: int, kind: str = "unusable-image") -> dict[str, Any]:
    return {"type": TYPE + kind, "title": "Refused", "status": status, "detail": f"This is {kind}."}


class Service:
    """A small service on loopback. `answers` has for each path an answer, or a function that gives the result of an
    image; `first` has answers that come before. `asked` has the path, images and API key of every request.
    """

    def __init__(self, digest: str = "0123456789abcdef") -> None:
        self.model = {"name": "m", "digest": digest, "manifest": {"features": 2, "labels": ["a", "b", "c"]}}
        self.first: list[Answered] = []
        self.asked: list[tuple[str, list[bytes], str | None]] = []
        self.answers: dict[str, Answered | Callable[[bytes], dict[str, Any]]] = {
            "/model": (200, {}, json.dumps(self.model).encode()),
            "/classify": lambda image: self.result(image),
            "/embed": lambda image: {
                "embedding": [len(image), 1.0],
                "image": {"width": 1, "height": 1, "format": "PNG"},
            },
        }
        self.too_large = 2**40  # bytes of a request that a proxy refuses
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                parts = body.split(b"\r\n--")[:-1] if body else []
                images = [part.split(b"\r\n\r\n", 1)[1] for part in parts]
                path = self.path.partition("?")[0]
                service.asked.append((path, images, self.headers.get("X-API-Key")))
                if len(body) > service.too_large:
                    service.first.append((413, {}, b"Too large"))
                answer = service.first.pop(0) if service.first else service.answers[path]
                status, headers, body = answer if isinstance(answer, tuple) else service.each(answer, images)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def result(self, image: bytes) -> dict[str, Any]:
        """The label is the image itself, or its start, so an answer that went to another image shows."""
        return {
            "predictions": [{"label": image[:20].decode("latin-1"), "index": 0, "score": 0.5}],
            "image": {"width": 1, "height": 1, "format": "PNG"},
        }

    def each(self, outcome: Callable[[bytes], dict[str, Any]], images: list[bytes]) -> Answered:
        """As the service does: if none could be used, the first problem is the answer."""
        results = [outcome(image) for image in images]
        if all("error" in result for result in results):
            found = results[0]["error"]
            return found["status"], {}, json.dumps(found).encode()
        return 200, {}, json.dumps({"model": self.model, "results": results}).encode()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Service]]:
    services: list[Service] = []

    def start(**options: Any) -> Service:
        services.append(Service(**options))
        return services[-1]

    yield start
    for service in services:
        service.close()


@pytest.fixture
def service(serve: Callable[..., Service]) -> Service:
    return serve()
