"""Sees every request from outside: counts it, times it, and writes its line into the log."""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from opentelemetry import context, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import NAMESPACE, PROBLEM_TYPE, UNANSWERED
from app.door.paths import METRICS, PROBES, UPLOADS
from app.telemetry.logs import access_log, request_state
from app.telemetry.metrics import Metrics
from app.telemetry.stages import Stages

TRACEPARENT = TraceContextTextMapPropagator()
MACHINES = PROBES | {METRICS}  # asked every few seconds: neither traced, nor logged but for debugging


class Observation:
    """The outermost ASGI layer. Others leave in `scope["state"]` what they know of a request:

    - `request_id`, for the log
    - `images`, a list of facts of each image
    - `fault`, the ServiceError that the client was told instead of an answer: its body was no HTTP
    - `stages`, put there by this layer, takes times; the client is told them as `Server-Timing`

    A valid W3C `traceparent` names the trace in the log, whether or not spans are exported.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        stages = state["stages"] = Stages(observe=self._metrics.stage)
        outcome = _Outcome()

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and (timing := stages.server_timing):
                MutableHeaders(scope=message)["Server-Timing"] = timing
            outcome.note(message)
            await send(message)

        self._metrics.request_started()
        with _known_to_the_log(scope):
            try:
                await self._app(scope, receive, watched)
            except Exception:  # answered outside of this layer
                outcome.status, outcome.problem = 500, "internal-server-error"
                raise
            finally:
                self._ended(scope, outcome, time.perf_counter() - stages.began)

    def _ended(self, scope: Scope, outcome: "_Outcome", seconds: float) -> None:
        method, path = scope["method"], str(scope["path"])
        unrouted = path if path in UPLOADS else "unmatched"  # refused at the door
        route: str = getattr(scope.get("route"), "path", unrouted)
        if fault := scope["state"].get("fault"):
            outcome.status, outcome.problem = int(fault.status), fault.kind
        self._metrics.request_ended(
            method=method, route=route, status=outcome.status, seconds=seconds, problem=outcome.problem
        )
        level = logging.DEBUG if route in MACHINES else logging.INFO
        if access_log.isEnabledFor(level):
            facts = {
                "method": method,
                "route": route,
                "status": outcome.status,
                "duration_ms": round(1000 * seconds, 3),
                **({"problem": outcome.problem} if outcome.problem else {}),
                **({"images": scope["state"]["images"]} if "images" in scope["state"] else {}),
            }
            access_log.log(level, "%s %s %d", method, route, outcome.status, extra={"fields": facts})


class _Outcome:
    """What was answered, by the messages of the answer."""

    def __init__(self) -> None:
        self.status = UNANSWERED
        self.problem: str | None = None  # its kind
        self._is_problem = False

    def note(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._is_problem = Headers(raw=message["headers"]).get("content-type") == PROBLEM_TYPE
        elif self._is_problem and self.problem is None:
            with suppress(ValueError, KeyError):  # whoever sends it in pieces goes without
                self.problem = json.loads(message.get("body", b""))["type"].removeprefix(NAMESPACE)


@contextmanager
def _known_to_the_log(scope: Scope) -> Iterator[None]:
    """What is logged meanwhile names the request, and the trace that its client began."""
    request = request_state.set(scope["state"])
    current = context.get_current()
    if not trace.get_current_span().get_span_context().is_valid:  # it is where FastAPI traces
        current = TRACEPARENT.extract(dict(Headers(scope=scope)), current)
    traced = context.attach(current)
    try:
        yield
    finally:
        context.detach(traced)
        request_state.reset(request)
