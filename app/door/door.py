"""What every request passes before the framework sees it, and every response on its way out.

The header is checked first, without reading a byte of the body: request id, port, API key, deadline, capacity, and what
the header says of the body. A preflight of CORS is answered then. For other requests an image has to arrive, or its
first 64 KiB. Every body is bounded while it is read, and the protocol below (`protocol.py`) bounds the header.

FastAPI cannot do this, because it reads a whole body before its dependencies run. Starlette's own limit cannot either,
because it answers in plain text.
"""

import asyncio
import logging
from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.problems import respond_to, respond_to_fault
from app.door.answer import Answer
from app.door.body import Bodies, Body
from app.door.cors import Cors
from app.door.header import Refusal, check_room, deadline, request_id
from app.door.keys import ApiKeys
from app.door.paths import check_port, upload_route
from app.errors import ServiceError, Unavailable
from app.lifecycle import STOPPING
from app.settings import Settings

log = logging.getLogger(__name__)


class Door:
    """ASGI middleware. Sets `request_id` and `deadline` in the scope's state, and needs `stages` there.

    For every POST it calls `refusal` with the request's deadline, to learn whether an image can be let in now.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: Settings,
        keys: ApiKeys,
        cors: Cors,
        refusal: Refusal,
    ) -> None:
        self._app = app
        self._bodies = Bodies(
            max_bytes=settings.max_upload_bytes,
            max_bytes_in_work=settings.max_intake_bytes,
            timeout_s=settings.receive_timeout_s,
        )
        self._metrics_port = settings.metrics_port
        self._keys = keys
        self._cors = cors
        self._root_path = settings.root_path
        self._request_timeout_s = settings.request_timeout_s
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        request = HTTPConnection(scope)
        state["request_id"] = request_id(request)
        body = Body(self._bodies, request, receive)

        def closing() -> bool:
            return not body.finished or state.get("crowded", False)

        path = scope["path"]
        answer = Answer(send, request=request, request_id=state["request_id"], cors=self._cors, closing=closing)
        try:
            self._check(request)
            if self._cors.is_preflight(request):
                await self._cors.preflight()(scope, receive, answer.send)
                return
            if scope["method"] == "POST" and upload_route(path):
                await body.arrive()
            scope.update(root_path=self._root_path, path=self._root_path + path)
            await self._app(scope, body.receive, answer.send)
        except (Exception, asyncio.CancelledError) as error:
            if answer.started:
                raise
            await _response(error, state)(scope, receive, answer.send)
        finally:
            body.release()

    def _check(self, request: HTTPConnection) -> None:
        """All that the header decides. Raises the ServiceError that refuses the request."""
        check_port(request, metrics_port=self._metrics_port)
        if not self._cors.is_preflight(request):  # browsers send none with it
            self._keys.check(request)
        request.state.deadline = deadline(request, max_s=self._request_timeout_s)
        check_room(request, refusal=self._refusal)
        self._bodies.check(request)


def _response(error: BaseException, state: dict[str, Any]) -> Response:
    if isinstance(error, asyncio.CancelledError):  # uvicorn cancels when the time to drain is over
        error = Unavailable(STOPPING)
    if isinstance(error, ServiceError):
        return respond_to(error, state)
    log.error("unhandled failure", exc_info=error)
    return respond_to_fault(state)
