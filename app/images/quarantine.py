"""Uploads that broke a decoder, so that sending one again breaks no other."""

import asyncio
import hashlib
import time
from collections import OrderedDict


class Quarantine:
    """A bounded set of SHA-256 digests that forget themselves. Belongs to the event loop; hashing does not block it."""

    def __init__(self, *, ttl_s: float, max_items: int) -> None:
        self._ttl_s = ttl_s
        self._max_items = max_items
        self._until: OrderedDict[tuple[int, bytes], float] = OrderedDict()  # by length and digest, the oldest first

    async def add(self, data: bytes) -> None:
        key = await _key(data)
        self._until[key] = time.monotonic() + self._ttl_s
        self._until.move_to_end(key)
        while len(self._until) > self._max_items:
            self._until.popitem(last=False)

    async def holds(self, data: bytes) -> bool:
        """Hashes only where something of this length is held, which is hardly ever."""
        while self._until and next(iter(self._until.values())) <= time.monotonic():
            self._until.popitem(last=False)
        return any(length == len(data) for length, _ in self._until) and await _key(data) in self._until


async def _key(data: bytes) -> tuple[int, bytes]:
    return len(data), await asyncio.to_thread(lambda: hashlib.sha256(data).digest())
