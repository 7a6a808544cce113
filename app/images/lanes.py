"""Which request gets a worker next: requests go in order of arrival, but large images hold up no small ones and do not
fill the memory.

A large image can be a file of 38 bytes. So among large images that wait, the one with fewest pixels for its bytes goes
first, and when they are too many, the one with most is refused: who would hold up photographs has to send as many bytes
as they have.
"""

import asyncio
from collections import deque
from typing import NamedTuple

from app.errors import Overloaded

PIXEL_S = 1e-8  # the first guess of the seconds that a large image takes, for each of its pixels
DECAY = 0.95  # of what was learned before, with every large image
MANY = "Too many large images are waiting. Send this request again in a moment."


class Turn(NamedTuple):
    large_pixels: int  # 0 of a small image
    pixels_per_byte: float
    entered: asyncio.Future[None]


class Lanes:
    """Counts free workers and the pixels of the large images that are being decoded. Belongs to one event loop.

    A small image takes any free worker, as long as fewer than `max_small` others are decoded. A large one waits until
    its pixels fit below `max_pixels_in_work`, and one that has more waits until no other large one is decoded. Where
    there are several workers, large images leave one to small ones. They wait for each other in order, and so do small
    ones.
    """

    def __init__(
        self, *, workers: int, max_small: int, max_pixels_in_work: int, max_large_waiting: int, max_wait_s: float
    ) -> None:
        self.workers = self._free_workers = workers
        self._places_for_large = max(workers - 1, 1)
        self._free = {False: max_small, True: self._places_for_large}  # by whether they are for large images
        self._max_pixels = self._free_pixels = max_pixels_in_work
        self._max_large_waiting = max_large_waiting
        self._max_wait_s = max_wait_s
        self._sum_pixels = float(max_pixels_in_work)
        self._sum_seconds = PIXEL_S * self._sum_pixels
        self._waiting: deque[Turn] = deque()  # in order of arrival, but places of large images are sorted among these

    @property
    def large(self) -> int:
        """The number of large images in work or waiting."""
        return self._places_for_large - self._free[True] + len(self._large_waiting())

    def check(self, large_pixels: int, size: int) -> None:
        """Whether an image that turns out to be large may enter, before others of its request do, which do not count.
        `size` is in bytes. Raises Overloaded.
        """
        ahead = [turn for turn in self._large_waiting() if turn.pixels_per_byte <= large_pixels / size]
        pixels = sum(turn.large_pixels for turn in ahead)
        wait_s = pixels * self._sum_seconds / self._sum_pixels / self._places_for_large
        if wait_s > self._max_wait_s:
            raise Overloaded(MANY, wait_s=wait_s)

    async def enter(self, large_pixels: int, size: int = 1) -> None:
        """Wait for a worker, and with `large_pixels` above 0 for those pixels too. After this returns, the caller has
        to call `leave` with the same number. `size` is the image's, in bytes. Raises Overloaded if it is the last of
        more large images than may wait, or becomes that.
        """
        entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        turn = Turn(large_pixels, large_pixels / max(size, 1), entered)
        for place, other in enumerate(self._waiting):
            if other.pixels_per_byte > turn.pixels_per_byte > 0:
                self._waiting[place], turn = turn, other  # it takes the turn of this one, which takes the next
        self._waiting.append(turn)
        self._admit()
        if len(large := self._large_waiting()) > self._max_large_waiting:
            self._waiting.remove(large[-1])
            large[-1].entered.set_exception(Overloaded(MANY))
        try:
            await entered
        except asyncio.CancelledError:
            if entered.cancelled():
                self._admit()  # the next large one may need fewer pixels
            elif entered.exception() is None:
                self.leave(large_pixels)
            raise

    def leave(self, large_pixels: int, seconds: float = 0.0) -> None:
        """`seconds` is the time since it entered."""
        self._free_workers += 1
        self._free[large_pixels > 0] += 1
        self._free_pixels += min(large_pixels, self._max_pixels)
        if large_pixels:
            self._sum_pixels = DECAY * self._sum_pixels + large_pixels
            self._sum_seconds = DECAY * self._sum_seconds + seconds
        self._admit()

    def _admit(self) -> None:
        passed_over: deque[Turn] = deque()
        large_wait = False
        while self._waiting and self._free_workers:
            turn = self._waiting.popleft()
            large_pixels = turn.large_pixels
            if turn.entered.cancelled():
                continue
            if (large_pixels and large_wait) or not self._fits(large_pixels):
                passed_over.append(turn)
                large_wait = large_wait or large_pixels > 0
                continue
            self._free_workers -= 1
            self._free[large_pixels > 0] -= 1
            self._free_pixels -= min(large_pixels, self._max_pixels)
            turn.entered.set_result(None)
        self._waiting = passed_over + self._waiting

    def _fits(self, large_pixels: int) -> bool:
        return self._free[large_pixels > 0] > 0 and min(large_pixels, self._max_pixels) <= self._free_pixels

    def _large_waiting(self) -> list[Turn]:
        return [turn for turn in self._waiting if turn.large_pixels and not turn.entered.cancelled()]
