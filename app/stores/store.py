"""What the service needs of a store, a place that keeps bytes for a limited time; and the store of the settings."""

from typing import Protocol

from app.settings import Settings
from app.stores.memory import MemoryStore
from app.telemetry.metrics import Metrics


class Store(Protocol):
    async def keep(self, key: str, value: bytes) -> bool:
        """Whether the value is kept. Never raises, and never takes long."""
        ...

    async def find(self, key: str) -> bytes | None:
        """The value, or None when the key is unknown or expired. Raises StoreUnavailable."""
        ...

    async def close(self) -> None: ...


def open_store(*, settings: Settings, namespace: str, metrics: Metrics) -> Store:
    """Values of other namespaces are not found. Redis need not answer yet: images are classified without it."""
    if settings.store == "memory":
        return MemoryStore(max_bytes=settings.store_max_bytes, ttl_s=settings.store_ttl_s)
    from app.stores.redis import RedisStore  # takes a tenth of a second to import, for those who use it

    return RedisStore(settings=settings, namespace=namespace, metrics=metrics)
