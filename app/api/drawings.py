"""Maps, walls and reports are made in threads: a bounded number at a time, and none after its request's deadline."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from app.errors import DeadlineExceeded, Overloaded

T = TypeVar("T")


class Drawings:
    """Counts what is being drawn or waits for a thread."""

    def __init__(self, *, pool: Executor, max_in_work: int) -> None:
        self._pool = pool
        self._places = threading.Semaphore(max_in_work)  # a drawing leaves its place in the thread that has drawn

    async def draw(self, render: Callable[[], T], *, deadline: float) -> T:
        """The result of `render`, called in the pool. `deadline` is in seconds of time.monotonic.

        Raises Overloaded at once when `max_in_work` others are drawn or wait, and DeadlineExceeded at the deadline.
        A drawing that has not begun by then never begins. One that has begun is finished, and counts until then.
        """
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise DeadlineExceeded
        if not self._places.acquire(blocking=False):
            raise Overloaded("Too many maps are being drawn. Send this request again in a moment.")
        drawing = self._pool.submit(render)
        drawing.add_done_callback(lambda _: self._places.release())
        try:
            async with asyncio.timeout(left_s):
                return await asyncio.wrap_future(drawing)
        except TimeoutError:
            raise DeadlineExceeded from None
