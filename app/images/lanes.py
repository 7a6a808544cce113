"""Which request gets a worker next: requests go in order of arrival, but large images hold up no small ones and do not
fill the memory.
"""

import asyncio
from collections import deque


class Lanes:
    """Counts free workers and the pixels of the large images that are being decoded. Belongs to one event loop.

    A small image takes any free worker, as long as fewer than `max_small` others are decoded. A large one waits until
    its pixels fit below `max_pixels_in_work`, and one that has more waits until no other large one is decoded. Where
    there are several workers, large images leave one to small ones. They wait for each other in order, and so do small
    ones.
    """

    def __init__(self, *, workers: int, max_small: int, max_pixels_in_work: int) -> None:
        self.workers = self._free_workers = workers
        self._free = {False: max_small, True: max(workers - 1, 1)}  # places, by whether they are for large images
        self._max_pixels = self._free_pixels = max_pixels_in_work
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def enter(self, large_pixels: int) -> None:
        """Wait for a worker, and with `large_pixels` above 0 for those pixels too. After this returns, the caller has
        to call `leave` with the same number.
        """
        entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((large_pixels, entered))
        self._admit()
        try:
            await entered
        except asyncio.CancelledError:
            if entered.cancelled():
                self._admit()  # the next large one may need fewer pixels
            else:
                self.leave(large_pixels)
            raise

    def leave(self, large_pixels: int) -> None:
        self._free_workers += 1
        self._free[large_pixels > 0] += 1
        self._free_pixels += min(large_pixels, self._max_pixels)
        self._admit()

    def _admit(self) -> None:
        passed_over: deque[tuple[int, asyncio.Future[None]]] = deque()
        large_wait = False
        while self._waiting and self._free_workers:
            large_pixels, entered = self._waiting.popleft()
            if entered.cancelled():
                continue
            if (large_pixels and large_wait) or not self._fits(large_pixels):
                passed_over.append((large_pixels, entered))
                large_wait = large_wait or large_pixels > 0
                continue
            self._free_workers -= 1
            self._free[large_pixels > 0] -= 1
            self._free_pixels -= min(large_pixels, self._max_pixels)
            entered.set_result(None)
        self._waiting = passed_over + self._waiting

    def _fits(self, large_pixels: int) -> bool:
        return self._free[large_pixels > 0] > 0 and min(large_pixels, self._max_pixels) <= self._free_pixels
