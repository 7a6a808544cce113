"""Keeps records in the memory of this process, bounded in bytes and in time."""

import time
from collections.abc import Callable

from cachetools import TTLCache

from app.maps.record import Record
from app.stores.id import ID_PATTERN, new_id


class MemoryStore:
    """Drops the least recently used records first. Belongs to the event loop; nothing in it blocks."""

    def __init__(self, *, max_bytes: int, ttl_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._records: TTLCache[str, Record] = TTLCache(max_bytes, ttl_s, clock, getsizeof=lambda record: record.nbytes)

    async def put(self, record: Record) -> str | None:
        """Keep a record and return its id, or None when the record alone is over the limit. Frees expired records."""
        if record.nbytes > self._records.maxsize:
            return None
        key = new_id()
        self._records[key] = record
        return key

    async def get(self, key: str) -> Record | None:
        return self._records.get(key) if ID_PATTERN.fullmatch(key) else None

    async def close(self) -> None:
        self._records.clear()
