"""The app in process while it stops, fails, and runs out of time."""

import pytest

from app.inference.runner import WRONG
from app.lifecycle import Lifecycle
from tests.support.engines import ENGINES, Watched
from tests.support.processes import eventually


@pytest.fixture
def app(serve):
    """A client of an app of its own: what it goes through cannot be undone."""
    with serve() as client:
        yield client


def statuses(client, star) -> dict[str, int]:
    return {
        "livez": client.get("/livez").status_code,
        "readyz": client.get("/readyz").status_code,
        "classify": client.post("/classify", content=star).status_code,
    }


@pytest.mark.parametrize("step", [Lifecycle.leave, Lifecycle.start_draining])
def test_a_stopping_service_is_not_ready_and_still_serves(app, star, step):
    assert statuses(app, star) == {"livez": 200, "readyz": 200, "classify": 200}
    step(app.app.state.services.lifecycle)
    assert statuses(app, star) == {"livez": 200, "readyz": 503, "classify": 200}
    answer = app.get("/readyz")
    assert answer.json()["type"] == "urn:vit-serve:problem:unavailable"
    assert int(answer.headers["retry-after"]) >= 1
    assert [app.head(path).status_code for path in ("/livez", "/readyz")] == [200, 503]


@pytest.mark.parametrize("kind", ENGINES)
def test_a_replica_that_begins_to_compute_wrong_numbers_fails(serve, star, monkeypatch, caplog, kind):
    def corrupt(graph, outputs):
        outputs["logits"] *= 1.01

    monkeypatch.setattr("app.inference.batcher.SELF_TEST_S", 0.5)
    with serve(engine=kind) as client:
        assert statuses(client, star) == {"livez": 200, "readyz": 200, "classify": 200}
        model = client.app.state.services.model
        model.engine = Watched(model.engine, after=corrupt)
        eventually(lambda: client.get("/livez").status_code == 503)
        assert {client.get(path).json()["detail"] for path in ("/livez", "/readyz")} == {WRONG}
        assert statuses(client, star) == {"livez": 503, "readyz": 503, "classify": 503}
    assert f"wrong numbers on {ENGINES[kind].provider}" in caplog.text


def test_a_deadline_that_has_passed_is_503_and_nothing_runs(app, star):
    model = app.app.state.services.model
    model.engine = engine = Watched(model.engine)
    answer = app.post("/classify", content=star, headers={"X-Request-Timeout": "0.000001"})
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:vit-serve:problem:deadline-exceeded")
    assert int(answer.headers["retry-after"]) >= 1
    assert app.app.state.services.admission.images == 0
    assert engine.runs == []
