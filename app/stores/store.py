"""What the service needs of a store, a place that keeps bytes for a limited time; and the store of the settings."""

import logging
from typing import Protocol

from app.settings import Settings
from app.stores.memory import MemoryStore
from app.telemetry.metrics import Metrics

log = logging.getLogger(__name__)


class Store(Protocol):
    async def keep(self, key: str, value: bytes) -> bool:
        """Whether the value is kept. Never raises, and never takes long."""
        ...

    async def find(self, key: str) -> bytes | None:
        """The value, or None when the key is unknown or expired. Raises StoreUnavailable."""
        ...

    async def close(self) -> None: ...


def open_store(*, settings: Settings, namespace: str, least_bytes: int, metrics: Metrics) -> Store:
    """Values of other namespaces are not found. Redis need not answer yet: images are classified without it.

    An image and its maps take `least_bytes` or more.
    """
    if settings.store == "memory":
        if 0 < settings.store_max_bytes < least_bytes:
            log.warning("VIT_STORE_MAX_BYTES has no room for an image and its maps, at least %d bytes", least_bytes)
        return MemoryStore(max_bytes=settings.store_max_bytes, ttl_s=settings.store_ttl_s)
    from app.stores.redis import RedisStore  # takes a tenth of a second to import, for those who use it

    return RedisStore(settings=settings, namespace=namespace, metrics=metrics)
