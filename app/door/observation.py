"""Counts and times every request, and writes its line into the log."""

import logging
import time
from dataclasses import KW_ONLY, dataclass
from typing import Any

from opentelemetry import context, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.door.paths import METRICS, PROBES, below, upload_route
from app.door.problems import UNANSWERED
from app.telemetry.logs import access_log, request_state
from app.telemetry.metrics import Metrics
from app.telemetry.stages import Stages

TRACEPARENT = TraceContextTextMapPropagator()
POLLED = PROBES | {METRICS}  # asked every few seconds: not traced, and logged at level debug only


@dataclass
class Observation:
    """The outermost ASGI layer. Other layers leave in `scope["state"]` what they know of a request:

    - `request_id`, for the log
    - `status`, once the answer begins
    - `images`, a list of facts of each image
    - `problem`, the kind of the problem that answered it
    - `refusal`, the ServiceError that the client got instead of an answer, because its body was not valid HTTP
    - `stages`, put there by this layer, collects times

    A valid W3C `traceparent` names the trace in the log, whether or not spans are exported.
    """

    app: ASGIApp
    _: KW_ONLY
    metrics: Metrics
    root_path: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        stages = state["stages"] = Stages(observe=self.metrics.stage)
        unrouted = upload_route(below(self.root_path, scope["path"])) or "unmatched"  # if it is refused at the door

        self.metrics.in_flight.inc()
        # Lines that are logged meanwhile name the request, and the trace that its client began.
        in_log = request_state.set(state)
        current = context.get_current()
        if not trace.get_current_span().get_span_context().is_valid:  # it is where FastAPI traces
            current = TRACEPARENT.extract(dict(Headers(scope=scope)), current)
        traced = context.attach(current)
        try:
            await self.app(scope, receive, send)
        except Exception:  # answered outside of this layer
            state |= {"status": 500, "problem": "internal-server-error"}
            raise
        finally:
            self._ended(scope, unrouted, time.perf_counter() - stages.began)
            context.detach(traced)
            request_state.reset(in_log)

    def _ended(self, scope: Scope, unrouted: str, seconds: float) -> None:
        method, state = scope["method"], scope["state"]
        status: int = state.get("status", UNANSWERED)
        route: str = getattr(scope.get("route"), "path", unrouted)
        problem: str | None = state.get("problem")
        if refusal := state.get("refusal"):
            status, problem = int(refusal.status), refusal.kind
        self.metrics.request_ended(method=method, route=route, status=status, seconds=seconds, problem=problem)
        level = logging.DEBUG if route in POLLED else logging.INFO
        if access_log.isEnabledFor(level):
            facts = {
                "method": method,
                "route": route,
                "status": status,
                "duration_ms": round(1000 * seconds, 3),
                **({"problem": problem} if problem else {}),
                **({"images": state["images"]} if "images" in state else {}),
            }
            access_log.log(level, "%s %s %d", method, route, status, extra={"fields": facts})
