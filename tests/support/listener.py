"""An HTTP server of a few lines."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def keeping_posts(*, answers: bool) -> Iterator[tuple[int, list[tuple[str, bytes]]]]:
    """Its port, and the path and body of each POST. Unless it `answers`, it hangs up after a POST; a GET gets 200."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def do_POST(self) -> None:
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            if answers:
                self.do_GET()

        def log_message(self, *_) -> None:
            """Not to the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(server.serve_forever, 0.05)
        try:
            yield server.server_port, received
        finally:
            server.shutdown()
