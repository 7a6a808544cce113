"""The app in process while it is full, stops, fails, and runs out of time."""

import threading
import time
from functools import partial

import numpy as np
import pytest
from PIL import Image

from app.inference.batcher import WRONG
from app.inference.cpu import OnnxEngine
from app.lifecycle import Lifecycle
from tests.support.processes import eventually


@pytest.fixture
def app(serve):
    """A client of an app of its own: what it goes through cannot be undone."""
    with serve() as client:
        yield client


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
def test_a_stopping_service_is_not_ready_and_still_serves_who_comes(app, lifecycle, star, step):
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


def test_an_error_that_sticks_fails_the_service(app, lifecycle, star, monkeypatch):
    def fail(*args):
        raise RuntimeError("CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; hostname=secret")

    monkeypatch.setattr(OnnxEngine, "run", fail)
    answer = app.post("/classify", content=star)
    assert answer.status_code == 503
    assert "secret" not in answer.text
    assert statuses(app, star) == {"livez": 503, "readyz": 503, "classify": 503}


def guilty(pixels) -> bool:
    return pixels.max() == 0


@pytest.fixture
def blank(encode):
    return encode(Image.new("RGB", (64, 64)))


def test_an_image_that_the_model_fails_on_fails_alone(client, star, blank, monkeypatch):
    run = OnnxEngine.run

    def fail_on_blank(self, graph, images, gear):
        if any(guilty(image) for image in images):
            raise RuntimeError("secret of the engine")
        return run(self, graph, images)

    monkeypatch.setattr(OnnxEngine, "run", fail_on_blank)
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


def test_numbers_that_are_not_finite_are_never_answered(client, star, monkeypatch, caplog):
    run = OnnxEngine.run

    def nonsense(self, graph, images, gear):
        outputs = run(self, graph, images, gear)
        outputs["logits"][:] = float("nan")
        return outputs

    with monkeypatch.context() as patch:
        patch.setattr(OnnxEngine, "run", nonsense)
        assert client.post("/classify", content=star).status_code == 500
        eventually(lambda: "NaN or infinity for 1 of 1 images" in caplog.text)
    assert statuses(client, star) == {"livez": 200, "readyz": 200, "classify": 200}


class Corrupt:
    """A session that has begun to compute wrong numbers."""

    def __init__(self, session):
        self.session = session

    def get_outputs(self):
        return self.session.get_outputs()

    def run(self, names, feeds):
        outputs = self.session.run(names, feeds)
        outputs[0] *= np.float32(1.01)
        return outputs


def test_a_replica_that_begins_to_compute_wrong_numbers_fails(serve, star, monkeypatch, caplog):
    monkeypatch.setattr("app.inference.queue.SELF_TEST_S", 0.5)
    with serve() as client:
        assert statuses(client, star) == {"livez": 200, "readyz": 200, "classify": 200}
        engine = client.app.state.services.engine
        for key, session in engine._sessions.items():
            engine._sessions[key] = Corrupt(session)
        eventually(lambda: client.get("/livez").status_code == 503)
        assert client.get("/livez").json()["detail"] == WRONG
        assert statuses(client, star) == {"livez": 503, "readyz": 503, "classify": 503}
    assert "wrong numbers on CPUExecutionProvider" in caplog.text


def test_a_larger_batch_that_would_be_answered_wrongly_is_not_answered(serve, star, monkeypatch):
    monkeypatch.setattr("app.inference.cpu.WARM_UP_S", 0.0)  # larger batches are first used while serving
    monkeypatch.setattr(OnnxEngine, "concurrency", 1)
    monkeypatch.setattr("app.inference.latency.LatencyModel.best", property(lambda model: model.sizes[-1]))
    with serve(model_threads=1) as client:  # so that there is one gear
        engine = client.app.state.services.engine
        session = engine._sessions["explain", "wide"]
        registry = client.app.state.services.metrics.registry
        waiting = partial(registry.get_sample_value, "vit_waiting_images")

        class WrongTogether(Corrupt):
            def run(self, names, feeds):
                if len(feeds["images"]) > 1:
                    return super().run(names, feeds)
                while waiting() < 2:  # until the next batch has to be a large one
                    time.sleep(0.001)
                return self.session.run(names, feeds)

        engine._sessions["explain", "wide"] = WrongTogether(session)
        answer = client.post("/classify", files=[("a", ("a", star))] * 8)
        results = answer.json().get("results", [])  # none if the first batch was a large one already
        for result in results:
            assert "error" in result or result["predictions"][0]["score"] == pytest.approx(0.99, abs=0.02)
        failed = {result["error"]["status"] for result in results if "error" in result}
        assert failed or answer.status_code == 503
        assert failed <= {503}
        assert statuses(client, star) == {"livez": 503, "readyz": 503, "classify": 503}


def test_memory_that_does_not_suffice_makes_batches_smaller(serve, star, monkeypatch):
    run = OnnxEngine.run
    tried = threading.Event()

    def small_batches_only(self, graph, images, gear):
        if len(images) > 1:
            tried.set()
            raise RuntimeError("bfc_arena.cc:376 Failed to allocate memory for requested buffer of size 2830172160")
        while waiting() < 2 and not tried.is_set():  # until the next batch has to be a large one
            time.sleep(0.001)
        return run(self, graph, images)

    with serve(model_threads=1) as client:  # so that there is one gear, and the next run takes all that wait
        registry = client.app.state.services.metrics.registry
        waiting = partial(registry.get_sample_value, "vit_waiting_images")
        monkeypatch.setattr(OnnxEngine, "run", small_batches_only)
        monkeypatch.setattr("app.inference.latency.LatencyModel.best", property(lambda model: model.sizes[-1]))
        answer = client.post("/classify", files=[("a", ("a", star))] * 8)
        assert [r["predictions"][0]["label"] for r in answer.json()["results"]] == ["star"] * 8
        assert client.get("/model").json()["best_batch"]["explain"] == 1


def test_who_has_no_time_left_is_told_so(client, star, monkeypatch):
    ran = []
    monkeypatch.setattr(OnnxEngine, "run", lambda *args: ran.append(args))
    answer = client.post("/classify", content=star, headers={"X-Request-Timeout": "0.000001"})
    assert answer.status_code == 503
    assert answer.json()["type"] == "urn:vit-serve:problem:deadline-exceeded"
    assert int(answer.headers["retry-after"]) >= 1
    assert client.app.state.services.admission.images == 0
    assert ran == []


def test_who_has_time_is_served(client, star):
    assert client.post("/classify", content=star, headers={"X-Request-Timeout": "60"}).status_code == 200
