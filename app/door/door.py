"""What every request passes before the framework sees it, and every response on its way out.

The header is checked first, without reading a byte of the body: request id, port, API key, deadline, capacity, and what
the header says of the body. Every body is bounded while it is read, and the protocol below (`protocol.py`) bounds the
header.

FastAPI cannot do this, because it reads a whole body before its dependencies run. Starlette's own limit cannot either,
because it answers in plain text.
"""

import asyncio
import logging
from dataclasses import KW_ONLY, dataclass

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.door.admission import Admission
from app.door.answer import Answer
from app.door.body import Bodies, Body
from app.door.header import deadline, request_id
from app.door.keys import ApiKeys
from app.door.paths import below, check_port
from app.door.problems import respond_to
from app.errors import Fault, Overloaded, ServiceError, Unavailable
from app.lifecycle import STOPPING
from app.settings import Settings
from app.telemetry.request_state import RequestState

log = logging.getLogger(__name__)


@dataclass
class Door:
    """ASGI middleware. Sets `request_id`, `key` and `deadline` in the RequestState, and needs its `stages`.

    It decides by the path below VIT_ROOT_PATH.
    """

    app: ASGIApp
    _: KW_ONLY
    settings: Settings
    keys: ApiKeys
    admission: Admission
    model: str  # the digest of the bundle

    def __post_init__(self) -> None:
        self._bodies = Bodies(settings=self.settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        state = RequestState.of(scope)
        root_path = self.settings.root_path
        # Starlette's routes do not see a line break at the end: /metrics%0a is /metrics.
        path = scope["path"] = below(root_path, scope["path"]).rstrip("\n")
        request = HTTPConnection(scope)
        state.request_id = request_id(request)
        body = Body(self._bodies, request, receive, stages=state.stages)
        answer = Answer(send, request=request, state=state, body=body, model=self.model)
        try:
            check_port(request, metrics_port=self.settings.metrics_port)
            state.key = self.keys.check(request)
            state.deadline = deadline(request, max_s=self.settings.request_timeout_s)
            # A map of an image that was classified before costs little, and its client has waited once already.
            if scope["method"] == "POST" and (refusal := self.admission.refusal(deadline=state.deadline)):
                raise refusal
            self._bodies.check(request)
            inner = {**scope, "root_path": root_path, "path": root_path + path}  # as ASGI has it
            # Files are small, and Starlette refuses ranges that are to be ignored (RFC 9110, 14.2), in plain text.
            inner["headers"] = [(name, value) for name, value in scope["headers"] if name != b"range"]
            if scope["method"] == "HEAD":  # what is below answers as to GET, and the server sends no body
                inner["method"] = "GET"
            try:
                await self.app(inner, body.receive, answer.send)
            finally:
                scope["route"] = inner.get("route")  # for the layers around
        except (Exception, asyncio.CancelledError) as error:
            if state.status:  # the answer has begun
                raise
            await _response(error, state)(scope, receive, answer.send)
        finally:
            body.release()


def _response(error: BaseException, state: RequestState) -> Response:
    if isinstance(error, asyncio.CancelledError):  # uvicorn cancels when the time to drain is over
        error = Unavailable(STOPPING)
    if isinstance(error, MemoryError):
        error = Overloaded("There is not enough memory now. Send this request again in a moment.")
    if not isinstance(error, ServiceError):
        log.error("unhandled failure", exc_info=error)
        error = Fault()
    error.__traceback__ = None  # its frames may refer to it: a cycle would keep the body
    return respond_to(error, state)
