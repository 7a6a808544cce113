"""Keeps records in Redis, for several replicas that share one load balancer.

A store must neither delay nor fail a classification. So every wait is short and bounded, and a record that cannot be
written is dropped. While Redis does not answer, no request is sent to it (`Breaker`). Redis deletes expired records.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Literal

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ConnectionError, OutOfMemoryError, ReadOnlyError, RedisError
from redis.exceptions import TimeoutError as RedisTimeout

from app.errors import CannotStart, StoreUnavailable
from app.maps.record import Record
from app.settings import Settings
from app.stores.breaker import Breaker
from app.stores.envelope import VERSION, DamagedRecord, seal, unseal
from app.stores.id import ID_PATTERN, new_id
from app.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

Operation = Literal["put", "get"]

RETRIES = 1  # where a connection was closed, as all are by a restart; a slow command is not repeated


class RedisStore:
    """Belongs to the event loop."""

    def __init__(self, *, settings: Settings, model: str, metrics: Metrics) -> None:
        """`model` is the digest of the bundle: records of other bundles are not found.

        Raises CannotStart for a VIT_STORE that is no address.
        """
        try:
            pool = BlockingConnectionPool.from_url(
                settings.store,
                max_connections=settings.store_connections,
                socket_connect_timeout=settings.store_connect_timeout_s,
                socket_timeout=settings.store_timeout_s,
                retry=Retry(NoBackoff(), RETRIES, supported_errors=(ConnectionError,)),
                protocol=2,  # no greeting, so a new connection can be used at once
                driver_info=None,
            )
            # Connects to nothing, and is the first to look at options after the `?`.
            pool.make_connection()  # type: ignore[no-untyped-call]  # redis-py gives it no types
            if pool.connection_kwargs.get("decode_responses"):
                raise ValueError("records are no text")
        except (ValueError, TypeError):  # their messages may have a part of the password
            raise CannotStart(
                "VIT_STORE is no address of Redis. Percent-encode /, ? and # in a password, and check the port and "
                "what follows a ?."
            ) from None
        self._redis: Redis = Redis.from_pool(pool)
        self._free = asyncio.Semaphore(settings.store_connections)
        self._wait_s = settings.store_timeout_s  # for one of them
        self._longest_s = settings.store_connect_timeout_s + settings.store_timeout_s
        self._ttl_ms = math.ceil(1000 * settings.store_ttl_s)
        self._prefix = f"vit-serve:{VERSION}:{model}:"
        self._metrics = metrics
        self._breaker = Breaker(probe=self._ping)
        metrics.breaker.set_function(lambda: self._breaker.is_open)

    async def put(self, record: Record) -> str | None:
        key = new_id()
        envelope = seal(record)
        try:
            await self._ask("put", lambda: self._redis.set(self._prefix + key, envelope, px=self._ttl_ms))
        except StoreUnavailable:
            return None
        return key

    async def get(self, key: str) -> Record | None:
        if not ID_PATTERN.fullmatch(key):
            return None
        envelope = await self._ask("get", lambda: self._redis.get(self._prefix + key))
        if envelope is None:
            return None
        try:
            return unseal(envelope)
        except DamagedRecord:
            self._metrics.store_failures.labels("get", "damaged").inc()
            return None

    async def close(self) -> None:
        await self._breaker.close()
        with suppress(RedisError):  # of a connection over TLS, whose peer is silent
            await self._redis.aclose()

    async def _ask(self, operation: Operation, command: Callable[[], Awaitable[Any]]) -> Any:
        """Redis's answer to `command`. Raises StoreUnavailable, after a wait for a connection and the sum of both
        timeouts at the latest.

        The breaker counts missing answers, and refusals of the password. Other refusals, such as that of a full Redis,
        take no time, and a burst of requests that wait for each other says nothing of Redis.
        """
        if self._breaker.is_open:
            raise self._unavailable(operation, "breaker-open")
        try:
            async with asyncio.timeout(self._wait_s):
                await self._free.acquire()
        except TimeoutError:
            raise self._unavailable(operation, "busy") from None
        try:
            async with asyncio.timeout(self._longest_s):
                answer = await command()
        except (TimeoutError, RedisTimeout):
            self._breaker.failed()
            raise self._unavailable(operation, "timeout") from None
        except AuthenticationError:
            log.warning("Redis refuses the user or the password in VIT_STORE")
            self._breaker.failed()
            raise self._unavailable(operation, "refused") from None
        except (ConnectionError, OSError):
            self._breaker.failed()
            raise self._unavailable(operation, "no-connection") from None
        except OutOfMemoryError:
            raise self._unavailable(operation, "full") from None
        except ReadOnlyError:  # after a failover: connect again, so that the name is resolved again
            with suppress(RedisError):
                await self._redis.connection_pool.disconnect(inuse_connections=False)
            raise self._unavailable(operation, "read-only") from None
        except RedisError:
            raise self._unavailable(operation, "refused") from None
        finally:
            self._free.release()
        self._breaker.succeeded()
        return answer

    def _unavailable(self, operation: Operation, reason: str) -> StoreUnavailable:
        self._metrics.store_failures.labels(operation, reason).inc()
        return StoreUnavailable()

    async def _ping(self) -> None:
        async with asyncio.timeout(self._longest_s):
            await self._redis.ping()
