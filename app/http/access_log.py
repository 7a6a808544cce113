"""What went out: counts and times every request, completes the header of its answer, and writes its line in the log."""

import logging
import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from opentelemetry import context, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.guard import REQUEST_ID
from app.http.paths import METRICS, PROBES
from app.telemetry.logs import access_log
from app.telemetry.metrics import Metrics
from app.telemetry.request_state import RequestState, in_work
from app.telemetry.stages import Stages

MODEL_DIGEST = "X-Model-Digest"
SECURITY = {  # fields of every answer, unless a route sets its own
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
}
DOCS_POLICY = (  # Swagger UI starts with a script in the page, and nothing of a user is ever in that page
    b"default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TRACE = TraceContextTextMapPropagator()
TRACE_FIELDS = {name.encode() for name in TRACE.fields}
UNANSWERED = 499  # nginx's status for a client that left before the answer
POLLED = PROBES | {METRICS}  # asked every few seconds: not traced, and logged at level debug only

Fields = list[tuple[bytes, bytes]]  # of a header: names in small letters, and values


@dataclass
class AccessLog:
    """ASGI middleware around the guard. It says what the layers inside have left in the RequestState, whose `stages` it
    sets.

    A valid W3C `traceparent` names the trace in the log, whether or not spans are exported.
    """

    app: ASGIApp
    _: KW_ONLY
    metrics: Metrics
    routes: Sequence[Route]
    model: str  # the digest of the bundle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        state = RequestState.of(scope)
        stages = state.stages = Stages(observe=self.metrics.stage)
        ended: float | None = None

        async def answer(message: Message) -> None:
            nonlocal ended
            if message["type"] == "http.response.start":
                message = {**message, "headers": self._fields(message["headers"], scope, state)}
            await send(message)
            if message.get("body") or ended is None:  # not when a client that still sends is let go
                ended = time.perf_counter()

        self.metrics.in_flight.inc()
        # Lines that are logged meanwhile name the request, and the trace that its client began.
        in_log = in_work.set(state)
        traced = None
        fields = _trace_fields(scope)
        if fields and not trace.get_current_span().get_span_context().is_valid:  # it is where FastAPI traces
            traced = context.attach(TRACE.extract(fields))
        try:
            await self.app(scope, receive, answer)
        except Exception:  # answered outside of this layer
            state.status, state.problem = 500, "internal-server-error"
            raise
        finally:
            self._ended(scope, state, (ended or time.perf_counter()) - stages.began)
            if traced:
                context.detach(traced)
            in_work.reset(in_log)

    def _fields(self, fields: Fields, scope: Scope, state: RequestState) -> Fields:
        fields = [field for field in fields if field[0] != b"accept-ranges"]  # the guard drops `Range`
        fields.append((MODEL_DIGEST.lower().encode(), self.model.encode()))
        if timing := state.stages.server_timing:
            fields.append((b"server-timing", timing.encode()))
        if scope["path"] == "/docs":
            fields.append((b"content-security-policy", DOCS_POLICY))
        return with_identity(fields, state)

    def _ended(self, scope: Scope, state: RequestState, seconds: float) -> None:
        method = scope["method"]
        route: str = getattr(scope.get("route"), "path", None) or self._refused_route(scope)
        status, problem = state.status or UNANSWERED, state.problem
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
        """Of a request that the guard refused before its route was known. It leaves the path below VIT_ROOT_PATH."""
        return next((route.path for route in self.routes if route.matches(scope)[0] != Match.NONE), "unmatched")


def with_identity(fields: Fields, state: RequestState) -> Fields:
    """`fields`, the request's id, and those of SECURITY that are missing."""
    present = {name for name, _ in fields}
    missing = [(name, value) for name, value in SECURITY.items() if name not in present]
    return [*fields, (REQUEST_ID.lower().encode(), state.request_id.encode()), *missing]


def _trace_fields(scope: Scope) -> dict[str, str]:
    """The header's fields of W3C Trace Context, where it has them."""
    return {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in TRACE_FIELDS}
