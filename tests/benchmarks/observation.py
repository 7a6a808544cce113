"""What counting, timing and logging cost a request: a trivial ASGI app, with `Observation` and without."""

import asyncio
import io
import logging
import statistics
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tqdm import tqdm

from app.door.observation import Observation
from app.telemetry.logs import JsonFormatter, TextFormatter
from app.telemetry.metrics import STAGES, Metrics

REQUESTS = 1000  # per round
ROUNDS = 20
HEADERS = [(b"host", b"x"), (b"traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")]


class _Untimed:
    """Takes the stages where there is no `Observation`."""

    def add(self, *_: object) -> None:
        pass


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    stages = scope["state"].get("stages") or _Untimed()
    for stage in STAGES:
        stages.add(stage, 0.0, 0.001)
    scope["state"]["images"] = [{"sha256": "0123456789abcdef", "bytes": 51234, "width": 500, "height": 334}]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": b"{}"})


def measure() -> list[dict[str, str | float]]:
    log = logging.getLogger("app.access")
    log.propagate = False
    observed = Observation(answer, metrics=Metrics(), root_path="")

    def observing(formatter: logging.Formatter | None) -> Callable[[], float]:
        def timed() -> float:
            handler = logging.StreamHandler(io.StringIO())
            handler.setFormatter(formatter)
            log.handlers = [handler]
            log.setLevel(logging.INFO if formatter else logging.WARNING)
            return microseconds(observed)

        return timed

    variants: dict[str, Callable[[], float]] = {
        "nothing": lambda: microseconds(answer),
        "counted and timed": observing(None),
        "and logged as text": observing(TextFormatter()),
        "and logged as JSON": observing(JsonFormatter()),
    }
    found: dict[str, list[float]] = {name: [] for name in variants}
    for _ in tqdm(range(ROUNDS)):
        for name, timed in variants.items():
            found[name].append(timed())
    nothing = statistics.median(found.pop("nothing"))
    return [
        {"each request is": name, "µs": round(statistics.median(times) - nothing, 1)} for name, times in found.items()
    ]


def microseconds(app: ASGIApp) -> float:
    """CPU time per request."""

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        pass

    async def ask() -> float:
        start = time.process_time()
        for _ in range(REQUESTS):
            scope = {"type": "http", "method": "GET", "path": "/", "headers": HEADERS, "state": {}}
            await app(scope, receive, send)
        return 1e6 * (time.process_time() - start) / REQUESTS

    return asyncio.run(ask())
