"""Keeps values in Redis, for several replicas that share one load balancer.

A store must neither delay nor fail a classification. So every wait is short and bounded, and a value that cannot be
written is dropped. While Redis does not answer, no request is sent to it (`Breaker`). Redis deletes expired values.
"""

import asyncio
import logging
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any, Literal
from urllib.parse import urlsplit

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ConnectionError, ReadOnlyError, RedisError
from redis.exceptions import TimeoutError as RedisTimeout

from app.errors import CannotStart, StoreUnavailable
from app.settings import Settings
from app.stores.breaker import Breaker
from app.stores.name_server import NameServer
from app.stores.redis_failures import (
    CAUSES,
    CLOSED,
    ERRORS,
    PASSWORD,
    REFUSALS,
    REFUSED,
    SILENT,
    UNRESOLVED,
    Failure,
)
from app.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

Operation = Literal["put", "get"]

MISSING_ANSWERS = ("timeout", "no-connection")
SAY_AGAIN_S = 600.0
RETRIES = 1  # where a connection was closed, as all are by a restart; a slow command is not repeated


class RedisStore:
    """Belongs to the event loop."""

    def __init__(self, *, settings: Settings, namespace: str, metrics: Metrics) -> None:
        """Raises CannotStart for a VIT_STORE that is not a Redis address."""
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
                raise ValueError("values are not text")
            check_address(settings.store)
        except (ValueError, TypeError):  # their messages may have a part of the password
            raise CannotStart(
                "VIT_STORE is not a Redis address. Percent-encode /, ? and # in a password, and check the port and "
                "what follows a ?."
            ) from None
        self._names = NameServer()
        pool.connection_class = looking_up(self._names, pool.connection_class)
        self._redis: Redis = Redis.from_pool(pool)
        self._place = place(pool.connection_kwargs)
        self._free = asyncio.Semaphore(settings.store_connections)
        self._wait_s = settings.store_timeout_s  # for one of them
        self._longest_s = settings.store_connect_timeout_s + settings.store_timeout_s
        self._ttl_ms = math.ceil(1000 * settings.store_ttl_s)
        self._prefix = f"vit-serve:{namespace}:"
        self._metrics = metrics
        self._probe_key = f"{self._prefix}probe"  # after a failure its own: in a cluster, another may work
        self._said: dict[str, float] = {}  # when a failure was last logged
        self._breaker = Breaker(probe=self._try)
        metrics.breaker.set_function(lambda: self._breaker.is_open)

    async def keep(self, key: str, value: bytes) -> bool:
        try:
            await self._ask("put", key, lambda: self._redis.set(self._prefix + key, value, px=self._ttl_ms))
        except StoreUnavailable:
            return False
        return True

    async def find(self, key: str) -> bytes | None:
        value: bytes | None = await self._ask("get", key, lambda: self._redis.get(self._prefix + key))
        return value

    async def close(self) -> None:
        await self._breaker.close()
        with suppress(RedisError):  # of a connection over TLS, whose peer is silent
            await self._redis.aclose()

    async def _ask(self, operation: Operation, key: str, command: Callable[[], Awaitable[Any]]) -> Any:
        """Redis's answer to `command`. Raises StoreUnavailable, after a wait for a connection and the sum of both
        timeouts at the latest.

        The breaker counts missing answers, and opens at once where asking again is useless. Other refusals, such as
        that of a full Redis, take no time, and a burst of requests that wait for each other says nothing of Redis.
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
        except (RedisError, OSError) as error:
            failure = self._failure(error)
            if failure.lasting:
                self._probe_key = self._prefix + key
                self._breaker.open()
            elif failure.reason in MISSING_ANSWERS:
                self._breaker.failed()
            elif isinstance(error, ReadOnlyError):  # after a failover: connect again, so that the name is looked up
                with suppress(RedisError):
                    await self._redis.connection_pool.disconnect(inuse_connections=False)
            raise self._unavailable(operation, failure.reason) from None
        finally:
            self._free.release()
        self._breaker.succeeded()
        return answer

    def _failure(self, error: Exception) -> Failure:
        """Logs each kind of failure once in SAY_AGAIN_S."""
        failure = explain(error)
        if failure is SILENT and self._names.is_silent:
            failure = UNRESOLVED
        now = time.monotonic()
        if now >= self._said.get(failure.says, -math.inf) + SAY_AGAIN_S:
            self._said[failure.says] = now
            log.warning("Redis at %s %s", self._place, failure.says)
        return failure

    def _unavailable(self, operation: Operation, reason: str) -> StoreUnavailable:
        self._metrics.store_failures.labels(operation, reason).inc()
        return StoreUnavailable()

    async def _try(self) -> None:
        """Do what a request does, with the key of the last that failed. Raises RedisError and OSError."""
        try:
            async with asyncio.timeout(self._longest_s):
                await self._redis.set(self._probe_key, b"", px=1)
                await self._redis.get(self._probe_key)
        except (RedisError, OSError) as error:
            failure = self._failure(error)
            if failure.lasting:
                self._metrics.store_failures.labels("put", failure.reason).inc()  # requests no longer do
            if failure.lasting or failure.reason in MISSING_ANSWERS:
                raise  # else what Redis has can still be read


def check_address(address: str) -> None:
    """Raises ValueError for parts that redis-py leaves out in silence, such as the rest of a password with a slash."""
    parts = urlsplit(address)
    if parts.fragment or (parts.scheme != "unix" and not re.fullmatch(r"/?|/\d+", parts.path)):
        raise ValueError("the path is not a number")


def place(connection: dict[str, Any]) -> str:
    """Where a connection with these arguments leads, without a password."""
    return connection.get("path") or f"{connection.get('host', 'localhost')}:{connection.get('port', 6379)}"


def looking_up(names: NameServer, kind: type[AbstractConnection]) -> type[AbstractConnection]:
    """The same kind of connection, which looks up its host there first."""

    class Connection(kind):  # type: ignore[misc, valid-type]  # mypy knows no class whose base is a variable
        async def connect(self) -> None:
            if host := getattr(self, "host", None):  # a socket in a folder has none
                async with asyncio.timeout(self.socket_connect_timeout):
                    await names.find(host)
            await super().connect()

    return Connection


def explain(error: Exception) -> Failure:
    """The failure behind an error of redis-py, or behind TimeoutError."""
    if isinstance(error, TimeoutError | RedisTimeout):
        return SILENT
    below = list(_chain(error))
    for kind, failure in CAUSES:
        if any(isinstance(each, kind) for each in below):
            return failure
    if any(isinstance(each, AuthenticationError) for each in below):
        return PASSWORD
    if isinstance(error, RedisError):
        word = error.status_code or str(error).partition(" ")[0]
        if word in REFUSALS:
            return REFUSALS[word]
        for words, failure in ERRORS.items():
            if words in str(error):
                return failure
    if isinstance(error, ConnectionError | OSError):
        return CLOSED
    return REFUSED


def _chain(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    while each is not None:
        yield each
        each = each.__cause__ or each.__context__
