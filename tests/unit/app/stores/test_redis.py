"""app/stores/redis.py without a server: tests/integration/test_redis_store.py has one."""

import asyncio

import pytest
from redis.exceptions import AskError, BusyLoadingError, ConnectionError, MovedError, ResponseError

from app.errors import CannotStart
from app.settings import Settings
from app.stores.name_server import NameServer
from app.stores.redis import RedisStore, explain
from app.stores.redis_failures import CLUSTER
from app.telemetry.metrics import Metrics


@pytest.mark.parametrize(
    "host",
    [
        ":se/cret@host",
        "host:secret",
        "host?db=secret",
        "host?ssl=secret",
        "host?decode_responses=1",
        "user:p@ss/secret:rd@host",
        "user:pass#secret@host",
        "host/secret",
    ],
)
def test_what_is_no_address_is_refused_without_a_part_of_the_password(host):
    with pytest.raises(CannotStart, match=r"^VIT_STORE is not a Redis address") as refused:
        RedisStore(settings=Settings(store=f"redis://{host}"), namespace="digest", metrics=Metrics())
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("error", "reason", "lasting"),
    [
        (MovedError("42 127.0.0.1:7000", status_code="MOVED"), "refused", True),
        (AskError("42 127.0.0.1:7000", status_code="ASK"), "refused", True),
        (ResponseError("SELECT is not allowed in cluster mode", status_code="ERR"), "refused", True),
        (ResponseError("MISCONF Redis is configured to save RDB snapshots"), "refused", False),
        (BusyLoadingError("Redis is loading", status_code="LOADING"), "no-connection", False),
        (ResponseError("something new, with a secret"), "refused", False),
    ],
)
def test_answers_of_redis_are_explained(error, reason, lasting):
    failure = explain(error)
    assert (failure.reason, failure.lasting) == (reason, lasting)
    assert (failure is CLUSTER) == lasting
    assert "secret" not in failure.says


def test_too_many_connections_are_named_and_not_taken_for_a_lack_of_tls():
    said = explain(ConnectionError("max number of clients reached", status_code="ERR"))
    assert (said.reason, said.lasting, "maxclients" in said.says) == ("no-connection", False, True)


async def test_a_silent_name_server_is_asked_once_and_named(monkeypatch, metrics, caplog):
    """Its answer comes after the store has given up several times."""
    questions: list[asyncio.Future[list[object]]] = []

    def getaddrinfo(*_: object, **__: object) -> asyncio.Future[list[object]]:
        questions.append(asyncio.get_running_loop().create_future())
        return questions[-1]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    settings = Settings(store="redis://redis.example.test", store_connect_timeout_s=0.01, store_timeout_s=0.01)
    store = RedisStore(settings=settings, namespace="digest", metrics=metrics)
    for _ in range(3):
        assert not await store.keep("key", b"value")
    assert "Redis at redis.example.test:6379 has a name for which no name server answers" in caplog.text
    (question,) = questions
    question.set_exception(OSError("too late"))
    await store.close()


async def test_a_name_server_that_answers():
    names = NameServer()
    await names.find("127.0.0.1")
    assert not names.is_silent
