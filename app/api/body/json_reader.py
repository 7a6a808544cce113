"""Reads bodies in JSON beside the event loop: one at a time, and each counted as an image while it is read."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.door.admission import Admission
from app.errors import DeadlineExceeded

MAX_ON_LOOP_BYTES = 2**12  # reading as many takes a tenth of a millisecond
T = TypeVar("T")


class JsonReader:
    """One thread, because several would hold Python's lock in turn and keep the event loop from it."""

    def __init__(self, *, admission: Admission) -> None:
        self._admission = admission
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="json")

    async def read(self, read: Callable[[bytes | bytearray], T], body: bytes | bytearray, *, deadline: float) -> T:
        """`read(body)`. `deadline` is in seconds of time.monotonic.

        `read` may not hold Python's lock for long at a time. Raises what `read` and admission raise, and
        DeadlineExceeded.
        """
        with self._admission.admit(1, deadline=deadline):
            if len(body) <= MAX_ON_LOOP_BYTES:
                return read(body)
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    return await asyncio.get_running_loop().run_in_executor(self._pool, read, body)
            except TimeoutError:
                raise DeadlineExceeded from None

    def close(self) -> None:
        self._pool.shutdown()
