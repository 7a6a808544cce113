"""Who decodes next: in order of arrival, but large pictures neither hold up small ones nor fill the memory."""

import asyncio
from collections import deque


class Lanes:
    """Counts workers and the pixels of large pictures in work. Belongs to one event loop.

    A small picture weighs nothing and takes any free worker. A large one weighs its pixels: it waits for room, and it
    leaves one worker, where there are several, to small ones. Large ones wait for each other in order.
    """

    def __init__(self, *, workers: int, room: int) -> None:
        self._workers = workers
        self._large_workers = max(workers - 1, 1)
        self._room = room
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def enter(self, weight: int) -> None:
        """Wait for a worker, and for room. Whoever returned from here has to call `leave` with the same weight."""
        entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((weight, entered))
        self._admit()
        try:
            await entered
        except asyncio.CancelledError:
            if entered.cancelled():
                self._admit()  # the next large one may need less room
            else:
                self.leave(weight)
            raise

    def leave(self, weight: int) -> None:
        self._workers += 1
        if weight:
            self._large_workers += 1
            self._room += weight
        self._admit()

    def _admit(self) -> None:
        refused: deque[tuple[int, asyncio.Future[None]]] = deque()
        large_may = True
        while self._waiting and self._workers:
            weight, entered = self._waiting.popleft()
            if entered.cancelled():
                continue
            if weight and not (large_may and self._large_workers and weight <= self._room):
                large_may = False
                refused.append((weight, entered))
                continue
            self._workers -= 1
            if weight:
                self._large_workers -= 1
                self._room -= weight
            entered.set_result(None)
        self._waiting = refused + self._waiting
