"""The app in process while it is full, stops, fails, and runs out of time."""

import time

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
    assert app.head("/readyz").status_code == 503


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


def guilty(pixels) -> bool:
    return pixels.max() == 0


@pytest.fixture
def blank(encode):
    return encode(Image.new("RGB", (64, 64)))


def test_an_image_that_the_model_fails_on_fails_alone(app, star, blank):
    def fail_on_blank(graph, images):
        if any(guilty(image) for image in images):
            raise RuntimeError("secret of the engine")

    client = app
    watched(client, before=fail_on_blank)
    answer = client.post("/classify", files=[("a", ("a", star)), ("b", ("b", blank)), ("c", ("c", star))])
    assert answer.status_code == 200
    assert "secret" not in answer.text
    first, second, third = answer.json()["results"]
    assert first["predictions"][0]["label"] == third["predictions"][0]["label"] == "star"
    assert second["error"]["type"] == "urn:vit-serve:problem:inference-failed"
    answer = client.post("/classify", content=blank)
    assert answer.status_code == 500
    assert answer.json()["type"] == "urn:vit-serve:problem:inference-failed"
    assert statuses(client, star) == {"livez": 200, "readyz": 200, "classify": 200}


def test_numbers_that_are_not_finite_are_never_answered(app, star, caplog):
    def nonsense(graph, outputs):
        outputs["logits"][:] = float("nan")
        engine.after = lambda graph, outputs: None

    engine = watched(app, after=nonsense)
    assert app.post("/classify", content=star).status_code == 500
    eventually(lambda: "NaN or infinity for 1 of 1 images" in caplog.text)
    assert statuses(app, star) == {"livez": 200, "readyz": 200, "classify": 200}


def corrupt(graph, outputs):
    outputs["logits"] *= 1.01


@pytest.mark.parametrize("kind", ENGINES)
def test_a_replica_that_begins_to_compute_wrong_numbers_fails(serve, star, monkeypatch, caplog, kind):
    monkeypatch.setattr("app.inference.batcher.SELF_TEST_S", 0.5)
    with serve(engine=kind) as client:
        assert statuses(client, star) == {"livez": 200, "readyz": 200, "classify": 200}
        watched(client, after=corrupt)
        eventually(lambda: client.get("/livez").status_code == 503)
        assert client.get("/livez").json()["detail"] == WRONG
        assert statuses(client, star) == {"livez": 503, "readyz": 503, "classify": 503}
    assert f"wrong numbers on {ENGINES[kind].provider}" in caplog.text


@pytest.fixture(params=ENGINES)
def batching(serve, request, monkeypatch):
    """An app of its own on one core, where no engine runs images side by side."""
    monkeypatch.setattr("app.inference.model.WARM_UP_S", 0.0)  # larger batches are first used while serving
    monkeypatch.setattr("app.inference.batch_cost.LatencyModel.best", property(lambda model: model.sizes[-1]))
    with serve(engine=request.param, model_threads=1) as client:
        yield client


def until_more_wait(client):
    """A run of a single image ends when the next batch has to be a larger one."""
    registry = client.app.state.services.metrics.registry

    def wait(graph, images):
        while len(images) == 1 and registry.get_sample_value("vit_waiting_images") < 2:
            time.sleep(0.001)

    return wait


def test_a_larger_batch_that_would_be_answered_wrongly_is_not_answered(batching, star):
    def wrong_together(graph, outputs):
        if len(outputs["logits"]) > 1:
            corrupt(graph, outputs)

    watched(batching, before=until_more_wait(batching), after=wrong_together)
    answer = batching.post("/classify", files=[("a", ("a", star))] * 8)
    results = answer.json().get("results", [])  # none if the first batch was a large one already
    for result in results:
        assert "error" in result or result["predictions"][0]["score"] == pytest.approx(0.99, abs=0.02)
    failed = {result["error"]["status"] for result in results if "error" in result}
    assert failed or answer.status_code == 503
    assert failed <= {503}
    assert statuses(batching, star) == {"livez": 503, "readyz": 503, "classify": 503}


def test_a_lack_of_memory_makes_batches_smaller(batching, star):
    wait, too_many = until_more_wait(batching), []

    def small_batches_only(graph, images):
        if len(images) > 1:
            too_many.append(len(images))
            engine.before = lambda graph, images: None
            raise RuntimeError("bfc_arena.cc:376 Failed to allocate memory for requested buffer of size 2830172160")
        wait(graph, images)

    engine = watched(batching, before=small_batches_only)
    answer = batching.post("/classify", files=[("a", ("a", star))] * 8)
    assert [r["predictions"][0]["label"] for r in answer.json()["results"]] == ["star"] * 8
    assert batching.get("/model").json()["best_batch"]["explain"] == too_many[0] // 2


def test_a_deadline_that_has_passed_is_503_and_nothing_runs(app, star):
    client, engine = app, watched(app)
    answer = client.post("/classify", content=star, headers={"X-Request-Timeout": "0.000001"})
    assert answer.status_code == 503
    assert answer.json()["type"] == "urn:vit-serve:problem:deadline-exceeded"
    assert int(answer.headers["retry-after"]) >= 1
    assert client.app.state.services.admission.images == 0
    assert engine.runs == []
