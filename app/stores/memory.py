"""Keeps records in the memory of this process, bounded in bytes and in time."""

import asyncio
import time
from collections.abc import Callable

from cachetools import TTLCache

from app.maps.record import Record
from app.stores.id import new_id

OBJECTS_BYTES = 2600  # of a record beside its arrays and its thumbnail: Python's objects for these
SWEEPS_PER_TTL = 10  # so a record that no one asks for is freed after 1.1 times its time


class MemoryStore:
    """Drops the least recently used records first. Belongs to the event loop; nothing in it blocks."""

    def __init__(self, *, max_bytes: int, ttl_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._records: TTLCache[str, Record] = TTLCache(max_bytes, ttl_s, clock, getsizeof=bytes_of)
        self._sweep_s = ttl_s / SWEEPS_PER_TTL
        self._sweep: asyncio.TimerHandle | None = None  # while there are records

    async def put(self, record: Record) -> str | None:
        """Keep a record and return its id, or None when the record alone is over the limit. Frees expired records."""
        if bytes_of(record) > self._records.maxsize:
            return None
        key = new_id()
        self._records[key] = record
        if self._sweep is None:
            self._sweep_later()
        return key

    async def get(self, key: str) -> Record | None:
        return self._records.get(key)

    async def close(self) -> None:
        if self._sweep:
            self._sweep.cancel()
        self._records.clear()

    def _sweep_later(self) -> None:
        self._sweep = asyncio.get_running_loop().call_later(self._sweep_s, self._free_expired)

    def _free_expired(self) -> None:
        self._sweep = None
        self._records.expire()
        if self._records:
            self._sweep_later()


def bytes_of(record: Record) -> int:
    """What a record takes in memory."""
    return record.maps.nbytes + record.image.pixels.nbytes + len(record.image.thumbnail) + OBJECTS_BYTES
