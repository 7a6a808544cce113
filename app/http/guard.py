"""What may come in: every request is checked before the framework sees it.

The header is checked first, without reading a byte of the body: request id, port, API key, deadline, capacity, and what
the header says of the body. Every body is bounded while it is read, and the protocol below (`protocol.py`) bounds the
header.

FastAPI cannot do this, because it reads a whole body before its dependencies run. Starlette's own limit cannot either,
because it answers in plain text.
"""

import asyncio
import logging
import math
import re
import secrets
import time
from dataclasses import KW_ONLY, dataclass

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import Fault, InvalidParameter, Overloaded, ServiceError, Unavailable
from app.http.admission import Admission
from app.http.body import Body, BodyLimits
from app.http.keys import ApiKeys
from app.http.paths import below, check_port
from app.http.problems import respond_to
from app.lifecycle import STOPPING
from app.settings import Settings
from app.telemetry.request_state import RequestState

log = logging.getLogger(__name__)

REQUEST_ID = "X-Request-ID"
TIMEOUT = "X-Request-Timeout"
_PLAIN_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass
class Guard:
    """ASGI middleware. Sets `task`, `request_id`, `key` and `deadline` in the RequestState, and needs its `stages`.

    It decides by the path below VIT_ROOT_PATH, and leaves that in the scope.
    """

    app: ASGIApp
    _: KW_ONLY
    settings: Settings
    keys: ApiKeys
    admission: Admission

    def __post_init__(self) -> None:
        self._limits = BodyLimits(settings=self.settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        state = RequestState.of(scope)
        state.task = asyncio.current_task()
        # Starlette's routes do not see a line break at the end: /metrics%0a is /metrics.
        scope["path"] = below(self.settings.root_path, scope["path"]).rstrip("\n")
        request = HTTPConnection(scope)
        state.request_id = request_id(request)
        body = Body(limits=self._limits, headers=request.headers, receive=receive, send=send, state=state)
        try:
            self._check(request, state)
            inner = self._inner(scope)
            try:
                await self.app(inner, body.receive, body.send)
            finally:
                scope["route"] = inner.get("route")  # for the layers around
        except (Exception, asyncio.CancelledError) as error:
            if state.left and isinstance(error, asyncio.CancelledError):
                return  # no one reads an answer
            if state.status:  # the answer has begun
                raise
            await _response(error, state)(scope, receive, body.send)
        finally:
            body.release()

    def _check(self, request: HTTPConnection, state: RequestState) -> None:
        """The header alone. Raises the first ServiceError that it finds."""
        check_port(request, metrics_port=self.settings.metrics_port)
        state.key = self.keys.check(request)
        state.deadline = deadline(request, max_s=self.settings.request_timeout_s)
        # A map of an image that was classified before costs little, and its client has waited once already.
        if request.scope["method"] == "POST" and (refusal := self.admission.refusal(deadline=state.deadline)):
            raise refusal
        self._limits.check_header(request.headers)

    def _inner(self, scope: Scope) -> Scope:
        """The scope for the framework."""
        root_path = self.settings.root_path
        inner = {**scope, "root_path": root_path, "path": root_path + scope["path"]}  # as ASGI has it
        # Files are small, and Starlette refuses ranges that are to be ignored (RFC 9110, 14.2), in plain text.
        inner["headers"] = [(name, value) for name, value in scope["headers"] if name != b"range"]
        if scope["method"] == "HEAD":  # what is below answers as to GET, and the server sends no body
            inner["method"] = "GET"
        return inner


def request_id(request: HTTPConnection) -> str:
    """The client's X-Request-ID if it is plain, else a new id. A plain id cannot forge lines in a log."""
    given = request.headers.get(REQUEST_ID, "")
    return given if _PLAIN_ID.fullmatch(given) else secrets.token_hex(16)


def deadline(request: HTTPConnection, *, max_s: float) -> float:
    """When the answer has to be ready: X-Request-Timeout seconds from now, at most `max_s`.

    In seconds of `time.monotonic()`. Raises InvalidParameter.
    """
    value = request.headers.get(TIMEOUT)
    try:
        seconds = max_s if value is None else float(value)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise InvalidParameter(f"{TIMEOUT} must be a number of seconds greater than 0.")
    return time.monotonic() + min(seconds, max_s)


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
