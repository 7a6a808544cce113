"""Keeps records in this process's memory, bounded in bytes and in time."""

import time
from collections import OrderedDict
from collections.abc import Callable

from app.maps.record import Record
from app.stores.id import ID_PATTERN, new_id


class MemoryStore:
    """Least recently used records go first. Belongs to the event loop; nothing in it blocks."""

    def __init__(self, *, max_bytes: int, ttl_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_bytes = max_bytes
        self._ttl_s = ttl_s
        self._clock = clock
        self._records: OrderedDict[str, tuple[float, Record]] = OrderedDict()
        self.nbytes = 0

    async def put(self, record: Record) -> str | None:
        """Keep a record and return its id, or None when it alone is over the limit."""
        if record.nbytes > self._max_bytes:
            return None
        key = new_id()
        self._records[key] = (self._clock() + self._ttl_s, record)
        self.nbytes += record.nbytes
        while self.nbytes > self._max_bytes:
            self._drop(next(iter(self._records)))
        return key

    async def get(self, key: str) -> Record | None:
        if not ID_PATTERN.fullmatch(key) or key not in self._records:
            return None
        expires, record = self._records[key]
        if self._clock() >= expires:
            self._drop(key)
            return None
        self._records.move_to_end(key)
        return record

    async def close(self) -> None:
        self._records.clear()
        self.nbytes = 0

    def _drop(self, key: str) -> None:
        _, record = self._records.pop(key)
        self.nbytes -= record.nbytes
