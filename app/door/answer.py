"""What every answer carries, whoever made it."""

import json
from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

from app.api.problems import PROBLEM_TYPE
from app.door.header import REQUEST_ID

POLICY = "default-src 'none'; frame-ancestors 'none'"
DOCS_POLICY = (  # Swagger UI starts with a script in the page; nothing of a user's is ever in that page
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
    """Wraps `send`: the request's id, security headers where the route has not set its own, `instance` in a problem,
    and `Connection: close` where the connection cannot go on.
    """

    def __init__(self, send: Send, *, path: str, request_id: str, closing: Callable[[], bool]) -> None:
        self._send = send
        self._path = path
        self._request_id = request_id
        self._closing = closing
        self._problem: Message | None = None  # the start of one, held back until its body is known
        self._body = b""
        self.started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            self._complete(MutableHeaders(raw=message["headers"]))
            if PROBLEM_TYPE in MutableHeaders(raw=message["headers"]).get("Content-Type", ""):
                self._problem = message
            else:
                await self._send(message)
        elif self._problem is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._send_problem(self._problem)

    def _complete(self, headers: MutableHeaders) -> None:
        headers[REQUEST_ID] = self._request_id
        if self._path == "/docs":
            headers["Content-Security-Policy"] = DOCS_POLICY
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        if self._closing():
            headers["Connection"] = "close"

    async def _send_problem(self, start: Message) -> None:
        problem = {**json.loads(self._body), "instance": f"urn:request:{self._request_id}"}
        body = json.dumps(problem, ensure_ascii=False, separators=(",", ":")).encode()
        MutableHeaders(raw=start["headers"])["Content-Length"] = str(len(body))
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})
