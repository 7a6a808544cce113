"""Counts and times every request, and writes its line into the log."""

import logging
import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from opentelemetry import context, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.door.paths import METRICS, PROBES
from app.door.problems import UNANSWERED
from app.telemetry.logs import access_log
from app.telemetry.metrics import Metrics
from app.telemetry.request_state import RequestState, in_work
from app.telemetry.stages import Stages

TRACE = TraceContextTextMapPropagator()
TRACE_FIELDS = {name.encode() for name in TRACE.fields}
POLLED = PROBES | {METRICS}  # asked every few seconds: not traced, and logged at level debug only


@dataclass
class Observation:
    """The outermost ASGI layer. It says what the others have left in the RequestState, whose `stages` it sets.

    A valid W3C `traceparent` names the trace in the log, whether or not spans are exported.
    """

    app: ASGIApp
    _: KW_ONLY
    metrics: Metrics
    routes: Sequence[Route]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        state = RequestState.of(scope)
        stages = state.stages = Stages(observe=self.metrics.stage)
        self.metrics.in_flight.inc()
        # Lines that are logged meanwhile name the request, and the trace that its client began.
        in_log = in_work.set(state)
        current = context.get_current()
        if not trace.get_current_span().get_span_context().is_valid:  # it is where FastAPI traces
            current = TRACE.extract(_trace_fields(scope), current)
        traced = context.attach(current)
        try:
            await self.app(scope, receive, send)
        except Exception:  # answered outside of this layer
            state.status, state.problem = 500, "internal-server-error"
            raise
        finally:
            self._ended(scope, state, (state.ended or time.perf_counter()) - stages.began)
            context.detach(traced)
            in_work.reset(in_log)

    def _ended(self, scope: Scope, state: RequestState, seconds: float) -> None:
        method = scope["method"]
        route: str = getattr(scope.get("route"), "path", None) or self._refused_route(scope)
        status, problem = state.status or UNANSWERED, state.problem
        if state.refusal:
            status, problem = int(state.refusal.status), state.refusal.kind
        self.metrics.request_ended(
            method=method, route=route, status=status, seconds=seconds, problem=problem, key=state.key
        )
        level = logging.DEBUG if route in POLLED else logging.INFO
        if access_log.isEnabledFor(level):
            facts = {
                "method": method,
                "route": route,
                "status": status,
                "duration_ms": round(1000 * seconds, 3),
                **({"key": state.key} if state.key else {}),
                **({"problem": problem} if problem else {}),
                **({"images": state.images} if state.images else {}),
            }
            access_log.log(level, "%s %s %d", method, route, status, extra={"fields": facts})

    def _refused_route(self, scope: Scope) -> str:
        """Of a request that the door has refused before its route was known. It leaves the path below VIT_ROOT_PATH."""
        return next((route.path for route in self.routes if route.matches(scope)[0] != Match.NONE), "unmatched")


def _trace_fields(scope: Scope) -> dict[str, str]:
    """The header's fields of W3C Trace Context, where it has them."""
    return {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in TRACE_FIELDS}
