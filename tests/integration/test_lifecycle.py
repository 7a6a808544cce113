"""The app in process while it is full, stops, fails, and runs out of time."""

import pytest
from PIL import Image

from app.inference.runner import WRONG
from app.lifecycle import Lifecycle
from tests.support.engines import ENGINES, Watched
from tests.support.processes import eventually


@pytest.fixture(params=ENGINES)
def app(serve, request):
    """A client of an app of its own, on each engine of a CPU: what it goes through cannot be undone."""
    with serve(engine=request.param) as client:
        yield client


def watched(client, **functions) -> Watched:
    """The engine of this app, which from now on is watched."""
    model = client.app.state.services.model
    model.engine = Watched(model.engine, **functions)
    return model.engine


@pytest.fixture
def lifecycle(app):
    return app.app.state.services.lifecycle


def statuses(client, star) -> dict[str, int]:
    return {
        "livez": client.get("/livez").status_code,
        "readyz": client.get("/readyz").status_code,
        "classify": client.post("/classify", content=star).status_code,
    }


@pytest.mark.parametrize("step", [Lifecycle.leave, Lifecycle.start_draining])
def test_a_stopping_service_is_not_ready_and_still_serves(app, lifecycle, star, step):
    assert statuses(app, star) == {"livez": 200, "readyz": 200, "classify": 200}
    step(lifecycle)
    assert statuses(app, star) == {"livez": 200, "readyz": 503, "classify": 200}
    answer = app.get("/readyz")
    assert answer.json()["type"] == "urn:vit-serve:problem:unavailable"
    assert int(answer.headers["retry-after"]) >= 1
    assert [app.head(path).status_code for path in ("/livez", "/readyz")] == [200, 503]


def test_a_failed_service_says_so_and_serves_nothing(app, lifecycle, star):
    lifecycle.fail("It broke.")
    assert statuses(app, star) == {"livez": 503, "readyz": 503, "classify": 503}
    problem = app.get("/readyz").json()
    assert problem["detail"] == "It broke."
    assert problem["type"] == "urn:vit-serve:problem:unavailable"


def test_an_error_that_sticks_fails_the_service(app, lifecycle, star):
    def fail(graph, images):
        raise RuntimeError("CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; hostname=secret")

    watched(app, before=fail)
    answer = app.post("/classify", content=star)
    assert answer.status_code == 503
    assert "secret" not in answer.text
    assert statuses(app, star) == {"livez": 503, "readyz": 503, "classify": 503}


def test_an_image_that_the_model_fails_on_fails_alone(app, star, encode):
    blank = encode(Image.new("RGB", (64, 64)))

    def fail_on_blank(graph, images):
        if any(image.max() == 0 for image in images):
            raise RuntimeError("secret of the engine")

    watched(app, before=fail_on_blank)
    answer = app.post("/classify", files=[("a", ("a", star)), ("b", ("b", blank)), ("c", ("c", star))])
    assert answer.status_code == 200
    assert "secret" not in answer.text
    first, second, third = answer.json()["results"]
    assert first["predictions"][0]["label"] == third["predictions"][0]["label"] == "star"
    assert second["error"]["type"] == "urn:vit-serve:problem:inference-failed"
    answer = app.post("/classify", content=blank)
    assert answer.status_code == 500
    assert answer.json()["type"] == "urn:vit-serve:problem:inference-failed"
    assert statuses(app, star) == {"livez": 200, "readyz": 200, "classify": 200}


@pytest.mark.parametrize("kind", ENGINES)
def test_a_replica_that_begins_to_compute_wrong_numbers_fails(serve, star, monkeypatch, caplog, kind):
    def corrupt(graph, outputs):
        outputs["logits"] *= 1.01

    monkeypatch.setattr("app.inference.batcher.SELF_TEST_S", 0.5)
    with serve(engine=kind) as client:
        assert statuses(client, star) == {"livez": 200, "readyz": 200, "classify": 200}
        watched(client, after=corrupt)
        eventually(lambda: client.get("/livez").status_code == 503)
        assert client.get("/livez").json()["detail"] == WRONG
        assert statuses(client, star) == {"livez": 503, "readyz": 503, "classify": 503}
    assert f"wrong numbers on {ENGINES[kind].provider}" in caplog.text


def test_a_deadline_that_has_passed_is_503_and_nothing_runs(app, star):
    engine = watched(app)
    answer = app.post("/classify", content=star, headers={"X-Request-Timeout": "0.000001"})
    assert answer.status_code == 503
    assert answer.json()["type"] == "urn:vit-serve:problem:deadline-exceeded"
    assert int(answer.headers["retry-after"]) >= 1
    assert app.app.state.services.admission.images == 0
    assert engine.runs == []
