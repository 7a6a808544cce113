"""Uploads that made a worker fail, so that sending one again costs no further worker."""

import asyncio
import hashlib
import time
from collections.abc import Callable

from cachetools import TTLCache


class Quarantine:
    """A bounded set of SHA-256 digests, each of which is forgotten `ttl_s` after it was last added.

    Belongs to the event loop; hashing does not block it.
    """

    def __init__(self, *, ttl_s: float, max_items: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._digests: TTLCache[tuple[int, bytes], None] = TTLCache(max_items, ttl_s, clock)  # with the upload's length

    async def add(self, data: bytes) -> None:
        self._digests[await _key(data)] = None

    async def holds(self, data: bytes) -> bool:
        """Hashes only where an upload of the same length is held, which is rare."""
        return any(length == len(data) for length, _ in self._digests) and await _key(data) in self._digests


async def _key(data: bytes) -> tuple[int, bytes]:
    return len(data), await asyncio.to_thread(lambda: hashlib.sha256(data).digest())
