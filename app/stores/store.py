"""What the service needs of a store, a place that keeps records for a limited time; and the store of the settings."""

from typing import Protocol

from app.maps.record import Record
from app.settings import Settings
from app.stores.memory import MemoryStore
from app.telemetry.metrics import Metrics


class Store(Protocol):
    async def put(self, record: Record) -> str | None:
        """Keep a record and return its id, or None when it is not kept. Never raises, and never takes long."""
        ...

    async def get(self, key: str) -> Record | None:
        """The record, or None when the id is unknown, expired or malformed. Raises StoreUnavailable."""
        ...

    async def close(self) -> None: ...


def open_store(*, settings: Settings, model: str, metrics: Metrics) -> Store:
    """`model` is the digest of the bundle. Redis need not answer yet: images are classified without it."""
    if settings.store == "memory":
        return MemoryStore(max_bytes=settings.store_max_bytes, ttl_s=settings.store_ttl_s)
    from app.stores.redis import RedisStore  # takes a tenth of a second to import, for those who use it

    return RedisStore(settings=settings, model=model, metrics=metrics)
