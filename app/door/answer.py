"""What every response has, whatever made it: header fields, and a line break after JSON."""

from dataclasses import KW_ONLY, dataclass, field

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import Message, Send

from app.door.body import Body
from app.door.cors import Cors
from app.door.header import MODEL_DIGEST, REQUEST_ID

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


@dataclass
class Answer:
    """An answer on its way out: its header is finished, and JSON gets a line break at its end. Leaves its status in the
    scope's state.
    """

    onward: Send
    _: KW_ONLY
    request: HTTPConnection
    body: Body  # of the request
    cors: Cors
    model: str  # the digest of the bundle
    _ends_line: bool = field(default=False, init=False)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            state, headers = self.request.scope["state"], MutableHeaders(raw=message["headers"])
            state["status"] = message["status"]
            self._ends_line = headers.get("Content-Type") == "application/json" and "Content-Length" in headers
            if self._ends_line:
                headers["Content-Length"] = str(int(headers["Content-Length"]) + 1)
            headers[MODEL_DIGEST] = self.model
            if timing := state["stages"].server_timing:
                headers["Server-Timing"] = timing
            closing = state.get("crowded", False) or not (self.body.finished or state.get("arrived", False))
            complete(headers, self.request, cors=self.cors, closing=closing)
        elif self._ends_line and not message.get("more_body"):
            message = {**message, "body": message.get("body", b"") + b"\n"}
        await self.onward(message)


def complete(headers: MutableHeaders, request: HTTPConnection, *, cors: Cors, closing: bool) -> None:
    """Add the request's id, the security headers that a route has not set, those of CORS, and `Connection: close` when
    the connection will close. The request's path has no prefix of VIT_ROOT_PATH.
    """
    headers[REQUEST_ID] = request.state.request_id
    if request.scope["path"] == "/docs":
        headers["Content-Security-Policy"] = DOCS_POLICY
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    cors.complete(headers, request)
    if closing:
        headers["Connection"] = "close"
