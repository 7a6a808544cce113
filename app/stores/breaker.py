"""A circuit breaker (Nygard, Release It!): requests do not wait for a store that has just failed several times."""

import time
from collections.abc import Callable

FAILURES = 5
PAUSE_S = 5.0


class Breaker:
    """Opens after FAILURES failures in a row. Then it lets one request through every PAUSE_S, and closes with the first
    that works. Belongs to the event loop.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._next = 0.0  # when a request may find out, while it is open

    @property
    def is_open(self) -> bool:
        return self._failures >= FAILURES

    def lets_through(self) -> bool:
        """Whether this request may ask the store."""
        if self.is_open and self._clock() < self._next:
            return False
        self._next = self._clock() + PAUSE_S
        return True

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self) -> None:
        self._failures += 1
        self._next = self._clock() + PAUSE_S
