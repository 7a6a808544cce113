"""An image that waits for the model, and how it is told what became of it."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from app.errors import ServiceError
from app.inference.contract import Graph, Outputs, Pixels

log = logging.getLogger(__name__)


@dataclass(kw_only=True, eq=False)
class Ticket:
    graph: Graph
    pixels: Pixels  # (height, width, 3)
    deadline: float  # seconds of time.monotonic
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Outputs]
    queued: float  # seconds of perf_counter, like those of the batch that it was in
    started: float = 0.0
    ended: float = 0.0


def answer(tickets: Sequence[Ticket], answers: Sequence[Outputs | ServiceError]) -> None:
    """Resolve the futures of `tickets`, in their event loop. Any thread may call this."""

    def resolve() -> None:
        for ticket, found in zip(tickets, answers, strict=True):
            if ticket.future.done():
                continue
            if isinstance(found, ServiceError):
                ticket.future.set_exception(found)
            else:
                ticket.future.set_result(found)

    if not tickets:
        return
    try:
        tickets[0].loop.call_soon_threadsafe(resolve)
    except RuntimeError:  # the loop is closed: nobody is left to answer
        log.warning("dropped %d answers after shutdown", len(tickets))
