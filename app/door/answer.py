"""What every response carries, whatever made it."""

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
    """Wraps `send` to add the request's id, missing security headers, those of CORS, and `Connection: close` where
    one ends.
    """

    def __init__(
        self, send: Send, *, request: HTTPConnection, request_id: str, cors: Cors, closing: Callable[[], bool]
    ) -> None:
        self._send = send
        self._request = request
        self._path = request.scope.get("path")
        self._cors = cors
        self._request_id = request_id
        self._closing = closing
        self.started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            self._complete(MutableHeaders(raw=message["headers"]))
        await self._send(message)

    def _complete(self, headers: MutableHeaders) -> None:
        headers[REQUEST_ID] = self._request_id
        if self._path == "/docs":
            headers["Content-Security-Policy"] = DOCS_POLICY
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        self._cors.complete(headers, self._request)
        if self._closing():
            headers["Connection"] = "close"
