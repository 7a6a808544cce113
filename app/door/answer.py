"""What every response has, whatever made it: header fields, and a line break after JSON."""

from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import Message, Send

from app.door.cors import Cors
from app.door.header import REQUEST_ID

POLICY = "default-src 'none'; frame-ancestors 'none'"
DOCS_POLICY = (  # Swagger UI starts with a script in the page, and nothing of a user is ever in that page
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Answer:
    """An answer on its way out: its header is finished, and JSON gets a line break at its end."""

    def __init__(self, send: Send, *, finish: Callable[[MutableHeaders], None]) -> None:
        """`finish` is called with the header before it is sent."""
        self.started = False
        self._send = send
        self._finish = finish
        self._ends_line = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started, headers = True, MutableHeaders(raw=message["headers"])
            self._ends_line = headers.get("Content-Type") == "application/json" and "Content-Length" in headers
            if self._ends_line:
                headers["Content-Length"] = str(int(headers["Content-Length"]) + 1)
            self._finish(headers)
        elif self._ends_line and not message.get("more_body"):
            message = {**message, "body": message.get("body", b"") + b"\n"}
        await self._send(message)


def complete(
    headers: MutableHeaders, request: HTTPConnection, *, request_id: str, path: str | None, cors: Cors, closing: bool
) -> None:
    """Add the request's id, the security headers that a route has not set, those of CORS, and `Connection: close` when
    the connection will close. `path` has no prefix of VIT_ROOT_PATH.
    """
    headers[REQUEST_ID] = request_id
    if path == "/docs":
        headers["Content-Security-Policy"] = DOCS_POLICY
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    cors.complete(headers, request)
    if closing:
        headers["Connection"] = "close"
