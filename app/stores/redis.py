"""Keeps values in Redis, for several replicas that share one load balancer.

A store must neither delay nor fail a classification. So every wait is short and bounded, and a value that cannot be
written is dropped. While Redis does not answer, hardly any request is sent to it (`Breaker`). Redis deletes expired
values.
"""

import asyncio
import logging
import math
import re
import time
from contextlib import suppress
from typing import Any, Literal
from urllib.parse import urlsplit

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ConnectionError, OutOfMemoryError, ReadOnlyError, RedisError
from redis.exceptions import TimeoutError as RedisTimeout

from app.errors import CannotStart, StoreUnavailable
from app.settings import Settings
from app.stores.breaker import Breaker
from app.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

Operation = Literal["put", "get"]

CONNECTIONS = 16
SAY_AGAIN_S = 600.0
RETRIES = 1  # where a connection was closed, as all are by a restart; a slow command is not repeated
_WORD = re.compile(r"[A-Z]+\b")  # of an answer that says what Redis refuses


class RedisStore:
    """Belongs to the event loop."""

    def __init__(self, *, settings: Settings, namespace: str, metrics: Metrics) -> None:
        """Raises CannotStart for a VIT_STORE that is not a Redis address."""
        try:
            pool = BlockingConnectionPool.from_url(
                settings.store,
                max_connections=CONNECTIONS,
                timeout=None,  # `_ask` bounds all waits together
                socket_connect_timeout=settings.store_timeout_s,
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
        self._redis: Redis = Redis.from_pool(pool)
        self._place = place(pool.connection_kwargs)
        self._timeout_s = settings.store_timeout_s
        self._ttl_ms = math.ceil(1000 * settings.store_ttl_s)
        self._prefix = f"vit-serve:{namespace}:"
        self._metrics = metrics
        self._said: dict[str, float] = {}  # when a failure was last logged
        self._breaker = Breaker()
        metrics.breaker.set_function(lambda: self._breaker.is_open)

    async def keep(self, key: str, value: bytes) -> bool:
        try:
            await self._ask("put", self._redis.set, self._prefix + key, value, px=self._ttl_ms)
        except StoreUnavailable:
            return False
        return True

    async def find(self, key: str) -> bytes | None:
        value: bytes | None = await self._ask("get", self._redis.get, self._prefix + key)
        return value

    async def close(self) -> None:
        with suppress(RedisError):  # of a connection over TLS, whose peer is silent
            await self._redis.aclose()

    async def _ask(self, operation: Operation, command: Any, *arguments: object, **options: object) -> Any:
        """Redis's answer. Raises StoreUnavailable, after VIT_STORE_TIMEOUT_S at the latest.

        The breaker counts missing answers. A refusal, such as that of a full Redis, takes no time, and another command
        may work.
        """
        if not self._breaker.lets_through():
            raise self._unavailable(operation, "breaker-open")
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await command(*arguments, **options)
        except (RedisError, OSError) as failure:
            error = answer_in(failure)
            self._log(error)
            reason = reason_of(error)
            if reason in ("timeout", "no-connection"):
                self._breaker.failed()
            elif isinstance(error, ReadOnlyError):  # after a failover: connect again, so that the name is looked up
                with suppress(RedisError):
                    await self._redis.connection_pool.disconnect(inuse_connections=False)
            raise self._unavailable(operation, reason) from None
        self._breaker.succeeded()
        return answer

    def _log(self, error: Exception) -> None:
        """Each kind of failure once in SAY_AGAIN_S."""
        said, now = in_a_word(error), time.monotonic()
        if now >= self._said.get(said, -math.inf) + SAY_AGAIN_S:
            self._said[said] = now
            log.warning("Redis at %s fails: %s", self._place, said)

    def _unavailable(self, operation: Operation, reason: str) -> StoreUnavailable:
        self._metrics.store_failures.labels(operation, reason).inc()
        return StoreUnavailable()


def check_address(address: str) -> None:
    """Raises ValueError for parts that redis-py leaves out in silence, such as the rest of a password with a slash."""
    parts = urlsplit(address)
    if parts.fragment or (parts.scheme != "unix" and not re.fullmatch(r"/?|/\d+", parts.path)):
        raise ValueError("the path is not a number")


def place(connection: dict[str, Any]) -> str:
    """Where a connection with these arguments leads, without a password."""
    return connection.get("path") or f"{connection.get('host', 'localhost')}:{connection.get('port', 6379)}"


def answer_in(error: Exception) -> Exception:
    """What Redis refuses to a new connection, which redis-py puts in a ConnectionError; else the error itself."""
    inner = error.args[0] if error.args else None
    return inner if isinstance(inner, RedisError) else error


def reason_of(error: Exception) -> str:
    """In the metric, for an error of redis-py or of the system."""
    match error:
        case OutOfMemoryError():
            return "full"
        case RedisTimeout() | TimeoutError():
            return "timeout"
        case AuthenticationError():
            return "refused"
        case ConnectionError() | OSError():
            return "no-connection"
        case _:
            return "refused"


def in_a_word(error: Exception) -> str:
    """The first word of Redis's answer, such as NOPERM, or the name of the exception at its root, such as gaierror. No
    other text is repeated: it may have a part of the password.
    """
    if isinstance(error, RedisError) and (code := error.status_code or _WORD.match(str(error))):
        return code if isinstance(code, str) else code[0]
    return type(error.__cause__ or error.__context__ or error).__name__
