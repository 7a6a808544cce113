"""Maps, walls and reports are made in threads: a bounded number at a time, and none after its request's deadline."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
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
        A drawing that has not begun by then never begins.
        """
        if self._in_work >= self._max_in_work:
            raise Overloaded("Too many maps are being drawn. Send this request again in a moment.")
        self._in_work += 1
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                return await asyncio.get_running_loop().run_in_executor(self._pool, render)
        except TimeoutError:
            raise DeadlineExceeded from None
        finally:
            self._in_work -= 1
