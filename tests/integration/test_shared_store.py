"""Two replicas and one Redis: what one has classified the other explains; without Redis both still classify."""

from collections.abc import Iterator

import pytest

from tests.support.processes import eventually
from tests.support.redis_server import RedisServer, running_redis

PROBLEM = "urn:vit-serve:problem:"


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory) -> Iterator[RedisServer]:
    """One for all tests: each leaves it running, and with room."""
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="module")
def replicas(serve, redis_server):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.stores.breaker.PAUSE_S", 0.01)  # look often whether Redis is back
        with serve(**redis_server.settings) as one, serve(**redis_server.settings) as other:
            yield one, other


def classify(client, picture) -> dict:
    answer = client.post("/classify", content=picture)
    assert answer.status_code == 200
    return answer.json()["results"][0]


@pytest.mark.parametrize("path", ["", "?format=json&method=evidence", "?format=npy&method=rollout", "/wall", "/report"])
def test_the_other_replica_answers_the_same(replicas, star, path):
    one, other = replicas
    link = classify(one, star)["attention"]
    ours, theirs = one.get(link + path), other.get(link + path)
    assert ours.status_code == theirs.status_code == 200
    assert ours.content == theirs.content
    assert ours.headers.get("etag") == theirs.headers.get("etag")


def test_the_other_replica_verifies(replicas, star):
    link = classify(replicas[0], star)["attention"]
    ours, theirs = (client.post(f"{link}/verify", params={"steps": 4}).json() for client in replicas)
    assert ours["deletion"]["scores"] == pytest.approx(theirs["deletion"]["scores"], abs=1e-5)


def test_without_redis_images_are_classified_and_maps_are_503(replicas, redis_server, star):
    """test_redis_store.py has a Redis that never answers."""
    one, other = replicas
    before = classify(one, star)
    redis_server.stop()
    for _ in range(8):  # on both sides of the breaker's opening
        after = classify(one, star)
        assert after["predictions"] == before["predictions"]
        assert "id" not in after
        assert "attention" not in after
    for path in ("", "/wall", "/report"):
        problem = other.get(before["attention"] + path)
        assert (problem.status_code, problem.json()["type"]) == (503, PROBLEM + "store-unavailable")
        assert 1 <= int(problem.headers["retry-after"]) <= 5
    assert other.get("/readyz").status_code == 200
    redis_server.start()
    eventually(lambda: "id" in classify(one, star))
    link = classify(one, star)["attention"]
    eventually(lambda: other.get(link).status_code != 503)
    assert other.get(link).status_code == 200


def test_a_replica_starts_while_redis_is_down(serve, redis_server, star):
    redis_server.stop()
    with serve(**redis_server.settings) as client:
        assert "id" not in classify(client, star)
    redis_server.start()
