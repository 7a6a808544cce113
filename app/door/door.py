"""What every request passes before the framework sees it, and every answer on its way out.

In this order: a name, the port, the key, the client's deadline, room, the header's word on the body. None of it reads a
byte of the body. Then a picture has to arrive, or its beginning; every body is bounded while it is read. The protocol
below (`protocol.py`) bounds the header.

FastAPI reads a whole body before its dependencies run, and Starlette's limit answers in plain text: neither will do.
"""

import asyncio
import logging
import time

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.problems import failure, problem_of, respond
from app.door.answer import Answer
from app.door.body import Bodies, Body
from app.door.header import Refusal, check_room, deadline, request_id
from app.door.keys import ApiKeys
from app.door.paths import UPLOADS, Listeners
from app.errors import ServiceError, Unavailable
from app.lifecycle import STOPPING
from app.settings import Settings
from app.telemetry.stages import Stages

log = logging.getLogger(__name__)


class Door:
    """ASGI middleware. Sets `request_id` and `deadline` in the scope's state, and needs `stages` there.

    `refusal` is asked for every POST, with its deadline: why no picture is let in now, if there is a reason.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: Settings,
        keys: ApiKeys,
        refusal: Refusal,
    ) -> None:
        self._app = app
        self._bodies = Bodies(
            max_bytes=settings.max_upload_bytes,
            max_bytes_in_work=settings.max_intake_bytes,
            timeout_s=settings.receive_timeout_s,
        )
        self._listeners = Listeners(metrics_port=settings.metrics_port)
        self._keys = keys
        self._request_timeout_s = settings.request_timeout_s
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        request = HTTPConnection(scope)
        state["request_id"] = request_id(request)
        body = Body(self._bodies, request, receive)

        def closing() -> bool:
            return not body.finished or state.get("crowded", False)

        answer = Answer(send, path=scope["path"], request_id=state["request_id"], closing=closing)
        try:
            self._check(request)
            if scope["path"] in UPLOADS and scope["method"] == "POST":
                await _arrive(body, state["stages"])
            await self._app(scope, body.receive, answer.send)
        except (Exception, asyncio.CancelledError) as error:
            if answer.started:
                raise
            await _response(error)(scope, receive, answer.send)
        finally:
            body.release()

    def _check(self, request: HTTPConnection) -> None:
        """What the header alone decides. Raises the ServiceError that refuses the request."""
        self._listeners.check(request)
        self._keys.check(request)
        request.state.deadline = deadline(request, max_s=self._request_timeout_s)
        check_room(request, refusal=self._refusal)
        self._bodies.check(request)


async def _arrive(body: Body, stages: Stages) -> None:
    try:
        await body.arrive()
    except ServiceError:
        stages.add("receive", stages.began, time.perf_counter())  # otherwise the route does
        raise


def _response(error: BaseException) -> Response:
    if isinstance(error, asyncio.CancelledError):  # by uvicorn, when there is no more time to drain
        error = Unavailable(STOPPING)
    if isinstance(error, ServiceError):
        return respond(problem_of(error), error.headers)
    log.error("unhandled failure", exc_info=error)
    return failure()
