"""app/stores/redis.py against a real Redis: what it keeps, and what it does when Redis fails."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import TimeoutError as RedisTimeout

from app.errors import StoreUnavailable
from app.settings import Settings
from app.stores.breaker import FAILURES
from app.stores.id import new_id
from app.stores.redis import CONNECTIONS, RedisStore
from app.telemetry.metrics import Metrics

MODEL = "5:" + "ab" * 32


@pytest.fixture
async def store_of(redis_server, metrics) -> AsyncIterator[Callable[..., RedisStore]]:
    """A store with these settings: `store_of(store_timeout_s=8)`."""
    made: list[RedisStore] = []

    def store(*, namespace: str = MODEL, **settings: Any) -> RedisStore:
        chosen = Settings(**{**redis_server.settings, "store_ttl_s": 60, **settings})
        made.append(RedisStore(settings=chosen, namespace=namespace, metrics=metrics))
        return made[-1]

    yield store
    for one in made:
        await one.close()


@pytest.fixture
async def store(store_of) -> RedisStore:
    return store_of()


@pytest.fixture
def hasty(monkeypatch) -> None:
    """Look every second whether Redis is back."""
    monkeypatch.setattr("app.stores.breaker.PAUSE_S", 1)


async def keep(store: RedisStore, value: bytes = b"maps") -> str | None:
    """The key, if it is kept."""
    key = new_id()
    return key if await store.keep(key, value) else None


def failures(metrics: Metrics) -> dict[tuple[str, str], float]:
    """Those that happened, by operation and reason."""
    (family,) = (family for family in metrics.registry.collect() if family.name == "vit_store_failures")
    counted = (sample for sample in family.samples if sample.name.endswith("_total"))
    return {(sample.labels["operation"], sample.labels["reason"]): sample.value for sample in counted if sample.value}


def breaker_open(metrics: Metrics) -> bool:
    return bool(metrics.registry.get_sample_value("vit_store_breaker_open"))


async def until_kept(store: RedisStore) -> None:
    while not await keep(store):
        await asyncio.sleep(0.01)


async def test_a_value_comes_back_until_redis_drops_it(store, redis_server, metrics):
    values = [bytes([n]) for n in range(40)]
    keys = await asyncio.gather(*(keep(store, value) for value in values))
    assert await asyncio.gather(*map(store.find, keys)) == values
    assert failures(metrics) == {}
    with redis_server.client() as client:
        assert 30_000 < client.pttl(f"vit-serve:{MODEL}:{keys[0]}") <= 60_000


async def test_values_are_kept_again_after_redis_was_down(store, redis_server, metrics, hasty):
    key = await keep(store)
    redis_server.stop()
    for _ in range(FAILURES):
        assert await keep(store) is None
    assert breaker_open(metrics)
    assert await keep(store) is None
    with pytest.raises(StoreUnavailable):
        await store.find(key)
    refused = {("put", "breaker-open"): 1, ("get", "breaker-open"): 1}
    assert failures(metrics) == {("put", "no-connection"): FAILURES, **refused}
    redis_server.start()
    await until_kept(store)
    assert not breaker_open(metrics)
    assert await store.find(key) is None  # a new Redis, that has nothing
    assert await store.find(await keep(store))


@pytest.mark.parametrize("connected", [True, False])
async def test_the_store_gives_up_on_a_redis_that_never_answers(store_of, redis_server, metrics, hasty, connected):
    store = store_of(store_timeout_s=0.5)
    key = await keep(store) if connected else new_id()
    redis_server.freeze()
    with pytest.raises(StoreUnavailable):
        await store.find(key)
    for _ in range(FAILURES - 1):
        assert await keep(store) is None
    assert breaker_open(metrics)
    assert failures(metrics) == {("get", "timeout"): 1, ("put", "timeout"): FAILURES - 1}
    redis_server.thaw()
    await until_kept(store)
    assert (await store.find(key) is not None) is connected


async def test_a_restart_between_two_requests_costs_neither(store, redis_server, metrics):
    """The pool's connections are closed, and the service learns of it only when it uses one."""
    await asyncio.gather(*(keep(store) for _ in range(8)))
    redis_server.stop()
    redis_server.start()
    assert all(await asyncio.gather(*(keep(store) for _ in range(8))))
    assert failures(metrics) == {}


@pytest.mark.parametrize(
    ("hinder", "release", "reason"),
    [
        (lambda redis: redis.config_set("maxmemory", 1), lambda redis: redis.config_set("maxmemory", 0), "full"),
        # After a failover, while the name still leads to what was the primary:
        (lambda redis: redis.replicaof("127.0.0.1", 1), lambda redis: redis.replicaof("NO", "ONE"), "refused"),
    ],
)
async def test_a_redis_that_takes_nothing_keeps_what_it_has(store, redis_server, metrics, hinder, release, reason):
    key = await keep(store)
    with redis_server.client() as client:
        hinder(client)
        for _ in range(2 * FAILURES):
            assert await keep(store) is None
        assert await store.find(key)
        release(client)
    assert await keep(store)
    assert failures(metrics) == {("put", reason): 2 * FAILURES}


async def test_a_refusal_is_logged_once_and_counted_each_time(store, redis_server, metrics, caplog):
    with redis_server.client() as client:
        client.config_set("requirepass", "secret")
    for _ in range(2 * FAILURES):
        assert await keep(store) is None
    assert failures(metrics) == {("put", "refused"): 2 * FAILURES}  # an alert lasts as long as Redis refuses
    assert caplog.messages == [f"Redis at {redis_server.url.removeprefix('unix://')} fails: NOAUTH"]


async def test_a_place_without_a_redis_is_named_without_the_password(store_of, caplog):
    assert await keep(store_of(store="redis://:secret@127.0.0.1:1", store_timeout_s=5)) is None
    assert caplog.messages == ["Redis at 127.0.0.1:1 fails: ConnectionRefusedError"]


async def test_connections_that_fail_to_close_cost_neither_a_classification_nor_the_end(
    store, redis_server, monkeypatch
):
    """As those over TLS whose peer is silent."""

    async def disconnect(*_: object, **__: object) -> None:
        raise RedisTimeout

    with redis_server.client() as client, monkeypatch.context() as patch:
        patch.setattr(AbstractConnection, "disconnect", disconnect)
        client.replicaof("127.0.0.1", 1)
        assert await keep(store) is None
        await store.close()


async def test_connections_are_bounded(store_of, redis_server):
    store = store_of(store_timeout_s=5)
    assert all(await asyncio.gather(*(keep(store) for _ in range(2 * CONNECTIONS))))
    with redis_server.client() as client:
        assert len(client.client_list()) - 1 == CONNECTIONS  # without the one that asks
