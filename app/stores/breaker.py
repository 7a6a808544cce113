"""A circuit breaker (Nygard, Release It!): no request waits for a store that has just failed several times in a row."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

FAILURES = 5
PAUSE_S = 5.0


class Breaker:
    """Opens after FAILURES failures in a row. While it is open it calls `probe` every PAUSE_S in the background, so no
    request is spent on finding out. Belongs to the event loop.
    """

    def __init__(self, *, probe: Callable[[], Awaitable[None]]) -> None:
        """`probe` raises while the store does not work."""
        self._probe = probe
        self._failures = 0
        self._recovering: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def is_open(self) -> bool:
        return self._recovering is not None

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self) -> None:
        self._failures += 1
        if self._failures >= FAILURES:
            self.open()

    def open(self) -> None:
        """To be called where another request would fail too."""
        self._failures = max(self._failures, 1)
        if not self.is_open:
            log.warning("the store does not work; no request is sent to it until it does")
            self._recovering = asyncio.create_task(self._recover())

    async def close(self) -> None:
        """Stop probing."""
        self._closed = True
        if self._recovering:
            self._recovering.cancel()
            await asyncio.wait([self._recovering])

    async def _recover(self) -> None:
        while self._failures and not self._closed:  # redis-py may swallow the cancellation
            await asyncio.sleep(PAUSE_S)
            try:
                await self._probe()
            except Exception as error:
                log.debug("the store still fails: %s", type(error).__name__)
            else:
                self._failures = 0
        self._recovering = None
        if not self._closed:
            log.info("the store works again")
