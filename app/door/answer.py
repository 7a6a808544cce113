"""What every response has, whatever made it: header fields, and a line break after JSON."""

import time
from dataclasses import KW_ONLY, dataclass, field

from starlette.requests import HTTPConnection
from starlette.types import Message, Send

from app.door.body import Body
from app.door.header import MODEL_DIGEST, REQUEST_ID
from app.telemetry.request_state import RequestState

Fields = list[tuple[bytes, bytes]]  # of a header: names in small letters, and values

POLICY = b"default-src 'none'; frame-ancestors 'none'"
DOCS_POLICY = (  # Swagger UI starts with a script in the page, and nothing of a user is ever in that page
    b"default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
CONTENT_SECURITY_POLICY = b"content-security-policy"
UNLESS_SET = {
    b"cache-control": b"no-store",
    CONTENT_SECURITY_POLICY: POLICY,
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
}
LENGTH = b"content-length"
JSON = (b"content-type", b"application/json")
ID, DIGEST = REQUEST_ID.lower().encode(), MODEL_DIGEST.lower().encode()


@dataclass
class Answer:
    """An answer on its way out: its header is finished, and JSON gets a line break at its end. A client that still
    sends gets all of it before its connection ends. Leaves its status in `state`.
    """

    onward: Send
    _: KW_ONLY
    request: HTTPConnection
    state: RequestState
    body: Body  # of the request
    model: str  # the digest of the bundle
    _ends_line: bool = field(default=False, init=False)
    _closing: bool = field(default=False, init=False)  # the connection, because the client still sends

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.state.status = message["status"]
            fields: Fields = [field for field in message["headers"] if field[0] != b"accept-ranges"]  # see Door
            self._ends_line = JSON in fields and any(name == LENGTH for name, _ in fields)
            if self._ends_line:
                fields = [(name, b"%d" % (int(value) + 1) if name == LENGTH else value) for name, value in fields]
            fields.append((DIGEST, self.model.encode()))
            if timing := self.state.stages.server_timing:
                fields.append((b"server-timing", timing.encode()))
            self._closing = not (self.body.finished or self.state.arrived)
            complete(fields, self.request, id=self.state.request_id, closing=self._closing)
            message = {**message, "headers": fields}
        elif not message.get("more_body"):
            if self._ends_line:
                message = {**message, "body": message.get("body", b"") + b"\n"}
            if self._closing:
                await self.onward({**message, "more_body": True})
                self.state.ended = time.perf_counter()
                await self.body.drop_rest()
                message = {"type": "http.response.body"}
        await self.onward(message)


def complete(fields: Fields, request: HTTPConnection, *, id: str, closing: bool) -> None:
    """Add the request's id, the security headers that a route has not set, and `Connection: close` when the connection
    will close. The request's path has no prefix of VIT_ROOT_PATH.
    """
    present = {name for name, _ in fields}
    fields.append((ID, id.encode()))
    if request.scope["path"] == "/docs":
        fields.append((CONTENT_SECURITY_POLICY, DOCS_POLICY))
        present.add(CONTENT_SECURITY_POLICY)
    fields += [(name, value) for name, value in UNLESS_SET.items() if name not in present]
    if closing:
        fields.append((b"connection", b"close"))
