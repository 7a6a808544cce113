import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@pytest.fixture
def answering() -> Iterator[Callable[..., str]]:
    """The address of a server that gives these answers in turn, and the last one from then on.

    `answering((503, {"Retry-After": "1"}, b"busy"), (200, {}, b"{}"))` stands for what is between client and service.
    """
    servers = []

    def start(*answers: tuple[int, dict[str, str], bytes]) -> str:
        waiting = list(answers)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def do_GET(self) -> None:
                status, headers, body = waiting.pop(0) if len(waiting) > 1 else waiting[0]
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()
