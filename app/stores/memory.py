"""Keeps values in the memory of this process, bounded in bytes and in time."""

import asyncio
import time
from collections.abc import Callable

from cachetools import TTLCache

SWEEPS_PER_TTL = 10  # so a value that no one asks for is freed after 1.1 times its time


class MemoryStore:
    """Drops the least recently used values first. Belongs to the event loop; nothing in it blocks."""

    def __init__(self, *, max_bytes: int, ttl_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._values: TTLCache[str, bytes] = TTLCache(max_bytes, ttl_s, clock, getsizeof=len)
        self._sweep_s = ttl_s / SWEEPS_PER_TTL
        self._sweep: asyncio.TimerHandle | None = None  # while there are values

    async def keep(self, key: str, value: bytes) -> bool:
        """False when the value alone is over the limit. Frees expired values."""
        if len(value) > self._values.maxsize:
            return False
        self._values[key] = value
        if self._sweep is None:
            self._sweep_later()
        return True

    async def find(self, key: str) -> bytes | None:
        return self._values.get(key)

    async def close(self) -> None:
        if self._sweep:
            self._sweep.cancel()
        self._values.clear()

    def _sweep_later(self) -> None:
        self._sweep = asyncio.get_running_loop().call_later(self._sweep_s, self._free_expired)

    def _free_expired(self) -> None:
        self._sweep = None
        self._values.expire()
        if self._values:
            self._sweep_later()
