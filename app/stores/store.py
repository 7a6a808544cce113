"""What the service needs of a store: a place that keeps records for a limited time."""

import re
import secrets
from typing import Protocol

from app.maps.record import Record

ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{22}")  # 128 random bits, so an id cannot be guessed


def new_id() -> str:
    return secrets.token_urlsafe(16)


class Store(Protocol):
    async def put(self, record: Record) -> str | None:
        """Keep a record and return its id, or None when it is not kept. Never raises, and never takes long."""
        ...

    async def get(self, key: str) -> Record | None:
        """The record, or None when the id is unknown, expired or malformed. Raises StoreUnavailable."""
        ...

    async def close(self) -> None: ...
