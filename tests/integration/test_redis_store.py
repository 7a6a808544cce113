"""app/stores/redis.py against a real Redis: what it keeps, and what it does when Redis fails."""

import asyncio
import shlex
import subprocess
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import TimeoutError as RedisTimeout

from app.errors import StoreUnavailable
from app.settings import Settings
from app.stores.breaker import FAILURES
from app.stores.envelope import VERSION, seal
from app.stores.id import new_id
from app.stores.redis import RedisStore
from app.telemetry.metrics import Metrics
from tests.benchmarks.server import free_port
from tests.support.records import make_prepared, make_record
from tests.support.redis_server import RedisServer

MODEL = "ab" * 32


@pytest.fixture
def run(redis_server, metrics) -> Callable[..., Any]:
    """Run `scenario(store)` on a store of its own."""

    def with_store(
        scenario: Callable[[RedisStore], Coroutine[Any, Any, Any]], *, model: str = MODEL, **settings: Any
    ) -> Any:
        async def scene() -> Any:
            chosen = Settings(**{**redis_server.settings, "store_ttl_s": 60, **settings})
            store = RedisStore(settings=chosen, model=model, metrics=metrics)
            try:
                return await scenario(store)
            finally:
                await store.close()

        return asyncio.run(scene())

    return with_store


@pytest.fixture
def hasty(monkeypatch) -> None:
    """Look every few milliseconds whether Redis is back."""
    monkeypatch.setattr("app.stores.breaker.PAUSE_S", 0.01)


async def keep(store: RedisStore) -> str | None:
    return await store.put(make_record())


def failures(metrics: Metrics) -> dict[tuple[str, str], float]:
    """Those that happened, by operation and reason."""
    (family,) = (family for family in metrics.registry.collect() if family.name == "vit_store_failures")
    counted = (sample for sample in family.samples if sample.name.endswith("_total"))
    return {(sample.labels["operation"], sample.labels["reason"]): sample.value for sample in counted if sample.value}


def breaker_open(metrics: Metrics) -> bool:
    return bool(metrics.registry.get_sample_value("vit_store_breaker_open"))


async def until_closed(metrics: Metrics) -> None:
    while breaker_open(metrics):
        await asyncio.sleep(0.01)


def test_a_record_comes_back(run, metrics):
    async def scenario(store: RedisStore) -> None:
        records = (make_record(image=make_prepared(thumbnail=bytes([n]))) for n in range(40))
        keys = await asyncio.gather(*(store.put(record) for record in records))
        found = await asyncio.gather(*(store.get(key) for key in keys))
        assert [record.image.thumbnail for record in found] == [bytes([n]) for n in range(40)]
        assert found[0].predictions == make_record().predictions

    run(scenario)
    assert failures(metrics) == {}


def test_redis_is_told_when_a_record_expires(run, redis_server):
    async def scenario(store: RedisStore) -> None:
        key = await store.put(make_record())
        with redis_server.client() as client:
            assert 30_000 < client.pttl(f"vit-serve:{VERSION}:{MODEL}:{key}") <= 60_000

    run(scenario)


@pytest.mark.parametrize(
    "key", ["", "nope", "../../etc/passwd", "a" * 10_000, "ä" * 22, "*" * 22, "\r\nFLUSHALL\r\n" * 2]
)
def test_a_malformed_id_is_unknown_without_a_query(run, redis_server, key):
    redis_server.stop()  # asked, it would not answer

    async def scenario(store: RedisStore) -> None:
        assert await store.get(key) is None

    run(scenario)


def test_records_of_other_models_and_versions_are_not_found(run, metrics, monkeypatch):
    """As while replicas of two versions or with two models share one Redis."""
    of_other_model = run(keep, model="cd" * 32)
    with monkeypatch.context() as patch:
        patch.setattr("app.stores.redis.VERSION", VERSION + 1)
        of_other_version = run(keep)

    async def scenario(store: RedisStore) -> None:
        assert await store.get(of_other_model) is None
        assert await store.get(of_other_version) is None
        assert await store.get(await keep(store))

    run(scenario)
    assert failures(metrics) == {}


@pytest.mark.parametrize("junk", [b"", b"\x80\x04cos\nsystem\n", seal(make_record())[:-1]])
def test_a_damaged_record_is_unknown(run, redis_server, metrics, junk):
    async def scenario(store: RedisStore) -> None:
        key = await store.put(make_record())
        with redis_server.client() as client:
            client.set(f"vit-serve:{VERSION}:{MODEL}:{key}", junk)
        assert await store.get(key) is None

    run(scenario)
    assert failures(metrics) == {("get", "damaged"): 1}


def test_records_are_kept_again_after_redis_was_down(run, redis_server, metrics, hasty):
    async def scenario(store: RedisStore) -> None:
        key = await store.put(make_record())
        redis_server.stop()
        for _ in range(FAILURES):
            assert await store.put(make_record()) is None
        assert breaker_open(metrics)
        assert await store.put(make_record()) is None
        with pytest.raises(StoreUnavailable):
            await store.get(key)
        redis_server.start()
        await until_closed(metrics)
        assert await store.get(key) is None  # a new Redis, that has nothing
        assert await store.get(await store.put(make_record()))

    run(scenario)
    assert failures(metrics) == {
        ("put", "no-connection"): FAILURES, ("put", "breaker-open"): 1, ("get", "breaker-open"): 1,
    }  # fmt: skip


@pytest.mark.parametrize("connected", [True, False])
def test_the_store_gives_up_on_a_redis_that_never_answers(run, redis_server, metrics, hasty, connected):
    async def scenario(store: RedisStore) -> None:
        key = await store.put(make_record()) if connected else new_id()
        redis_server.freeze()
        with pytest.raises(StoreUnavailable):
            await store.get(key)
        for _ in range(FAILURES - 1):
            assert await store.put(make_record()) is None
        assert breaker_open(metrics)
        redis_server.thaw()
        await until_closed(metrics)
        assert (await store.get(key) is not None) is connected

    run(scenario, store_timeout_s=0.5)
    assert failures(metrics) == {("get", "timeout"): 1, ("put", "timeout"): FAILURES - 1}


def test_a_burst_that_waits_for_a_connection_says_nothing_of_redis(run, metrics, monkeypatch):
    async def scenario(store: RedisStore) -> None:
        answers = asyncio.Event()
        monkeypatch.setattr(store._redis, "set", lambda *_, **__: answers.wait())
        first = asyncio.create_task(keep(store))
        await asyncio.sleep(0)
        assert await asyncio.gather(*(keep(store) for _ in range(FAILURES))) == FAILURES * [None]
        assert not breaker_open(metrics)
        answers.set()
        assert await first
        assert await keep(store)

    run(scenario, store_connections=1, store_timeout_s=0.05)
    assert failures(metrics) == {("put", "busy"): FAILURES}


def test_a_restart_between_two_requests_costs_neither(run, redis_server, metrics):
    """The pool's connections are closed, and the service learns of it only when it uses one."""

    async def scenario(store: RedisStore) -> None:
        await asyncio.gather(*(store.put(make_record()) for _ in range(8)))
        redis_server.stop()
        redis_server.start()
        assert all(await asyncio.gather(*(store.put(make_record()) for _ in range(8))))

    run(scenario)
    assert failures(metrics) == {}


def test_a_full_redis_keeps_what_it_has(run, redis_server, metrics):
    async def scenario(store: RedisStore) -> None:
        key = await store.put(make_record())
        with redis_server.client() as client:
            client.config_set("maxmemory", 1)
            client.config_set("maxmemory-policy", "noeviction")
        for _ in range(2 * FAILURES):
            assert await store.put(make_record()) is None
        assert await store.get(key)
        with redis_server.client() as client:
            client.config_set("maxmemory", 0)
        assert await store.put(make_record())

    run(scenario)
    assert failures(metrics) == {("put", "full"): 2 * FAILURES}


def test_a_read_only_replica_refuses_records(run, redis_server, metrics):
    """As after a failover, while the name still leads to what was the primary."""

    async def scenario(store: RedisStore) -> None:
        key = await store.put(make_record())
        with redis_server.client() as client:
            client.replicaof("127.0.0.1", 1)
            assert await store.put(make_record()) is None
            assert await store.get(key)
            client.replicaof("NO", "ONE")
        assert await store.put(make_record())

    run(scenario)
    assert failures(metrics) == {("put", "read-only"): 1}


def test_a_password_that_redis_refuses_is_named_and_stops_the_requests(run, redis_server, metrics, caplog):
    async def scenario(store: RedisStore) -> None:
        with redis_server.client() as client:
            client.config_set("requirepass", "secret")
            try:
                for _ in range(FAILURES + 1):
                    assert await store.put(make_record()) is None
            finally:
                client.config_set("requirepass", "")

    run(scenario)
    assert failures(metrics) == {("put", "refused"): FAILURES, ("put", "breaker-open"): 1}
    assert "Redis refuses the user or the password in VIT_STORE" in caplog.text


def test_connections_that_fail_to_close_cost_neither_a_classification_nor_the_end(run, redis_server):
    """As those over TLS whose peer is silent."""

    async def scenario(store: RedisStore) -> None:
        with redis_server.client() as client, patch.object(AbstractConnection, "disconnect", side_effect=RedisTimeout):
            client.replicaof("127.0.0.1", 1)
            assert await store.put(make_record()) is None
            client.replicaof("NO", "ONE")
            await store.close()

    run(scenario)


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Path:
    """A folder with the certificate of an authority, and with one that it has signed for localhost."""
    folder = tmp_path_factory.mktemp("tls")
    new_key = shlex.split("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2")
    for arguments in (
        ["-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority", "-addext", "keyUsage=critical,keyCertSign"],
        ["-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"],
    ):  # fmt: skip
        subprocess.run([*new_key, *arguments], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def tls_port(redis_server, authority) -> int:
    """Where Redis speaks TLS."""
    port = free_port()
    redis_server.stop()
    redis_server.start(
        "--tls-port", str(port), "--tls-auth-clients", "no", "--tls-cert-file", str(authority / "cert.pem"),
        "--tls-key-file", str(authority / "key.pem"),
    )  # fmt: skip
    return port


def test_tls_with_a_private_authority(run, tls_port, authority, metrics):
    address = f"rediss://localhost:{tls_port}/0"
    assert run(keep, store=f"{address}?ssl_ca_certs={authority}/ca.pem", store_connect_timeout_s=5)
    assert failures(metrics) == {}
    assert run(keep, store=address, store_connect_timeout_s=5) is None  # signed by none that the machine trusts
    wrong_name = f"rediss://127.0.0.1:{tls_port}/0?ssl_ca_certs={authority}/ca.pem"
    assert run(keep, store=wrong_name, store_connect_timeout_s=5) is None
    assert failures(metrics) == {("put", "no-connection"): 2}


@contextmanager
def frozen(server: RedisServer, seconds: float) -> Iterator[None]:
    """It answers after so many seconds, or at the end."""
    server.freeze()
    thawing = asyncio.get_running_loop().call_later(seconds, server.thaw)
    try:
        yield
    finally:
        thawing.cancel()
        server.thaw()


@pytest.mark.parametrize(("timeout_s", "kept"), [(0.05, False), (8, True)])
def test_a_slow_connection_has_as_long_as_the_setting_says(run, redis_server, tls_port, authority, timeout_s, kept):
    """Redis takes no part in the handshake at first, as one that is far away."""

    async def scenario(store: RedisStore) -> str | None:
        with frozen(redis_server, 0.3):
            return await keep(store)

    address = f"rediss://localhost:{tls_port}/0?ssl_ca_certs={authority}/ca.pem"
    assert (run(scenario, store=address, store_connect_timeout_s=timeout_s, store_timeout_s=5) is not None) is kept


def test_a_slow_answer_has_as_long_as_the_setting_says(run, redis_server):
    """With less time the store gives up, as above."""

    async def scenario(store: RedisStore) -> str | None:
        assert await keep(store)
        with frozen(redis_server, 1):
            return await keep(store)

    assert run(scenario, store_timeout_s=8)


@pytest.mark.parametrize("connections", [1, 3])
def test_there_are_no_more_connections_than_the_setting_says(run, redis_server, connections):
    async def scenario(store: RedisStore) -> int:
        assert all(await asyncio.gather(*(keep(store) for _ in range(20))))
        with redis_server.client() as client:
            return len(client.client_list()) - 1  # without the one that asks

    assert run(scenario, store_connections=connections, store_timeout_s=5) == connections
