"""Which image gets a decoder next: first come, first served, but large images hold up no small ones and do not fill the
memory.
"""

import asyncio
from typing import NamedTuple

LARGE_PIXELS = 4_000_000  # an image of more takes a tenth of a second to decode, and not milliseconds


class Turn(NamedTuple):
    pixels: int
    entered: asyncio.Future[None]


class Turns:
    """Counts free workers, and the pixels of the large images that are being decoded. Belongs to one event loop.

    A large image waits until its pixels fit below `max_large_pixels`; one that has more waits until no other large one
    is decoded. Where there are several workers, large images leave one to small ones. So a small image may pass large
    ones. No image passes another of its kind, and a free worker goes to the first image that may take it.
    """

    def __init__(self, *, workers: int, max_large_pixels: int) -> None:
        self.workers = self._free_workers = workers
        self._free_for_large = max(workers - 1, 1)
        self._max_pixels = self._free_pixels = max_large_pixels
        self._waiting: list[Turn] = []  # in order of arrival

    async def enter(self, pixels: int) -> None:
        """Wait for a worker. After this returns, the caller has to call `leave` with the same number."""
        turn = Turn(pixels, asyncio.get_running_loop().create_future())
        self._waiting.append(turn)
        self._admit()
        try:
            await turn.entered
        except asyncio.CancelledError:
            if turn.entered.cancelled():
                self._admit()  # the next large one may need fewer pixels
            else:
                self.leave(pixels)
            raise

    def leave(self, pixels: int) -> None:
        self._count(pixels, 1)
        self._admit()

    def _admit(self) -> None:
        self._waiting, waiting = [], self._waiting
        large_waits = False
        for turn in waiting:
            large = turn.pixels > LARGE_PIXELS
            if turn.entered.cancelled():
                continue
            if self._free_workers and not (large and (large_waits or not self._has_room(turn.pixels))):
                self._count(turn.pixels, -1)
                turn.entered.set_result(None)
            else:
                self._waiting.append(turn)
                large_waits = large_waits or large

    def _has_room(self, pixels: int) -> bool:
        return self._free_for_large > 0 and min(pixels, self._max_pixels) <= self._free_pixels

    def _count(self, pixels: int, by: int) -> None:
        self._free_workers += by
        if pixels > LARGE_PIXELS:
            self._free_for_large += by
            self._free_pixels += by * min(pixels, self._max_pixels)
