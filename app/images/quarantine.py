"""Uploads that made a worker fail, so that sending one again costs no further worker."""

import asyncio
import time
from collections.abc import Callable

from cachetools import TTLCache

from app.images.upload import Upload


class Quarantine:
    """A bounded set of SHA-256 digests, each of which is forgotten `ttl_s` after it was last added.

    Belongs to the event loop; hashing does not block it.
    """

    def __init__(self, *, ttl_s: float, max_items: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._digests: TTLCache[tuple[int, bytes], None] = TTLCache(max_items, ttl_s, clock)  # with the upload's length

    async def add(self, upload: Upload) -> None:
        self._digests[await _key(upload)] = None

    async def holds(self, upload: Upload) -> bool:
        """Hashes only where an upload of the same length is held, which is rare."""
        return any(length == len(upload) for length, _ in self._digests) and await _key(upload) in self._digests


async def _key(upload: Upload) -> tuple[int, bytes]:
    return len(upload), await asyncio.to_thread(upload.sha256)
