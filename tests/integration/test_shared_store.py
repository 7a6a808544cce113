"""Two replicas and one Redis: what one has classified the other explains; without Redis both still classify."""

import pytest

from tests.support.processes import eventually


@pytest.fixture
def replicas(serve, redis_server, monkeypatch):
    monkeypatch.setattr("app.stores.breaker.PAUSE_S", 0.01)  # look often whether Redis is back
    with serve(**redis_server.settings) as one, serve(**redis_server.settings) as other:
        yield one, other


def classify(client, picture) -> dict:
    answer = client.post("/classify", content=picture)
    assert answer.status_code == 200
    return answer.json()["results"][0]


def explained(client) -> float:
    """How many images the replica has made maps of."""
    registry = client.app.state.services.metrics.registry
    return registry.get_sample_value("vit_batch_images_sum", {"graph": "explain"}) or 0.0


def test_models_that_share_a_redis_do_not_find_what_another_one_keeps(serve, redis_server, bundle_with, star):
    """Also when all but the name in the manifest is the same, so that the bytes could be read."""
    with (
        serve(**redis_server.settings) as one,
        serve(bundle=bundle_with(name="other"), **redis_server.settings) as other,
    ):
        links = [classify(model, star)["attention"] for model in (one, other)]
        assert [[model.get(link).status_code for link in links] for model in (one, other)] == [[200, 404], [404, 200]]


def test_replicas_answer_the_same_and_without_redis_they_classify_on(serve, replicas, redis_server, star):
    """test_redis_store.py has a Redis that never answers."""
    one, other = replicas
    before = classify(one, star)
    link = before["attention"]
    for path in ("", "?format=json&method=evidence", "?format=npy&method=rollout", "/wall", "/report"):
        ours, theirs = (client.get(link + path) for client in replicas)
        assert (ours.status_code, ours.content) == (200, theirs.content), path
        assert ours.headers.get("etag") == theirs.headers.get("etag")
    assert [explained(client) for client in replicas] == [1, 0]
    ours, theirs = (client.post(f"{link}/verify", params={"steps": 4}).json() for client in replicas)
    assert ours["deletion"]["scores"] == pytest.approx(theirs["deletion"]["scores"], abs=1e-5)
    redis_server.stop()
    for _ in range(8):  # on both sides of the breaker's opening
        after = classify(one, star)
        assert after["predictions"] == before["predictions"]
        assert not {"id", "attention"} & after.keys()
    for path in ("", "/wall", "/report"):
        problem = other.get(link + path)
        assert (problem.status_code, problem.json()["type"]) == (503, "urn:vit-serve:problem:store-unavailable")
        assert 1 <= int(problem.headers["retry-after"]) <= 5
    assert other.get("/readyz").status_code == 200
    with serve(**redis_server.settings) as started_meanwhile:
        assert "id" not in classify(started_meanwhile, star)
    redis_server.start()
    eventually(lambda: "id" in classify(one, star))
    link = classify(one, star)["attention"]
    eventually(lambda: other.get(link).status_code != 503)
    assert other.get(link).status_code == 200
