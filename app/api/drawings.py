"""Maps, walls and reports are made in threads: a bounded number at a time, and none after its request's deadline."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import TypeVar

from app.errors import DeadlineExceeded, Overloaded

T = TypeVar("T")


class Drawings:
    """Counts what is being drawn or waits for a thread. Belongs to the event loop."""

    def __init__(self, *, pool: Executor, max_in_work: int) -> None:
        self._pool = pool
        self._max_in_work = max_in_work
        self._in_work = 0

    async def draw(self, render: Callable[[], T], *, deadline: float) -> T:
        """The result of `render`, called in the pool. `deadline` is in seconds of time.monotonic.

        Raises Overloaded at once when `max_in_work` others are drawn or wait, and DeadlineExceeded at the deadline.
        A drawing that has not begun by then never begins. One that has begun is finished, and counts until then.
        """
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise DeadlineExceeded
        if self._in_work >= self._max_in_work:
            raise Overloaded("Too many maps are being drawn. Send this request again in a moment.")
        loop = asyncio.get_running_loop()
        drawing = self._pool.submit(render)
        self._in_work += 1
        drawing.add_done_callback(lambda _: self._leave(loop))
        try:
            async with asyncio.timeout(left_s):
                return await asyncio.wrap_future(drawing)
        except TimeoutError:
            raise DeadlineExceeded from None

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """In the thread that has drawn, or on the event loop when a drawing is given up that has not begun."""
        with suppress(RuntimeError):  # the loop is closed, and nothing is drawn any more
            loop.call_soon_threadsafe(self._drawn)

    def _drawn(self) -> None:
        self._in_work -= 1
