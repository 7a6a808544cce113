"""Two replicas and one Redis: what one has classified the other explains; without Redis both still classify."""

import pytest

from tests.support.processes import eventually

PROBLEM = "urn:vit-serve:problem:"


@pytest.fixture
def replicas(serve, redis_server, monkeypatch):
    monkeypatch.setattr("app.stores.breaker.PAUSE_S", 0.01)  # look often whether Redis is back
    with serve(**redis_server.settings) as one, serve(**redis_server.settings) as other:
        yield one, other


def classify(client, picture) -> dict:
    answer = client.post("/classify", content=picture)
    assert answer.status_code == 200
    return answer.json()["results"][0]


def test_the_other_replica_answers_the_same(replicas, star):
    link = classify(replicas[0], star)["attention"]
    for path in ("", "?format=json&method=evidence", "?format=npy&method=rollout", "/wall", "/report"):
        ours, theirs = (client.get(link + path) for client in replicas)
        assert (ours.status_code, ours.content) == (200, theirs.content), path
        assert ours.headers.get("etag") == theirs.headers.get("etag")
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
        assert not {"id", "attention"} & after.keys()
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
