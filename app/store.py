"""Keeps the maps of pictures classified a while ago, in this process's memory, bounded in bytes and in time."""

import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.labels import Prediction
from app.maps import Maps
from app.preprocess import Box

ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{22}")  # 128 random bits, so that no id can be guessed


@dataclass(frozen=True, kw_only=True)
class Record:
    """What one forward pass said about one picture, and the picture to draw it on."""

    maps: Maps
    predictions: tuple[Prediction, ...]  # of the classes that the maps tell of, most likely first
    image_size: tuple[int, int]  # width, height of the upright original
    box: Box  # what the network saw, in pixels of the upright original
    pixels: npt.NDArray[np.uint8]  # (height, width, 3) that the network saw
    thumbnail: bytes  # JPEG of the upright original, scaled down

    @property
    def nbytes(self) -> int:
        return self.maps.nbytes + self.pixels.nbytes + len(self.thumbnail)


class MemoryStore:
    """Least recently used records go first. Belongs to the event loop; nothing in it blocks."""

    def __init__(self, *, max_bytes: int, ttl_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_bytes = max_bytes
        self._ttl_s = ttl_s
        self._clock = clock
        self._records: OrderedDict[str, tuple[float, Record]] = OrderedDict()
        self.nbytes = 0

    def put(self, record: Record) -> str | None:
        """Keep a record and return its id, or None when it alone is over the limit."""
        if record.nbytes > self._max_bytes:
            return None
        key = secrets.token_urlsafe(16)
        self._records[key] = (self._clock() + self._ttl_s, record)
        self.nbytes += record.nbytes
        while self.nbytes > self._max_bytes:
            self._drop(next(iter(self._records)))
        return key

    def get(self, key: str) -> Record | None:
        """The record, or None when the id is unknown, expired or malformed."""
        if not ID_PATTERN.fullmatch(key) or key not in self._records:
            return None
        expires, record = self._records[key]
        if self._clock() >= expires:
            self._drop(key)
            return None
        self._records.move_to_end(key)
        return record

    def _drop(self, key: str) -> None:
        _, record = self._records.pop(key)
        self.nbytes -= record.nbytes
