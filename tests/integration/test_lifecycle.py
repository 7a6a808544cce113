"""The app in process while it stops, fails, and runs out of time."""

import shutil

from app.backend import CHANGED
from app.inference.runner import WRONG
from app.settings import DEMO_BUNDLE
from tests.support.engines import Watched
from tests.support.processes import eventually


def test_a_replica_that_begins_to_compute_wrong_numbers_fails(serve, star, monkeypatch, caplog):
    def corrupt(graph, outputs, beside):
        outputs["logits"] *= 1.01

    monkeypatch.setattr("app.inference.batcher.SELF_TEST_S", 0.5)
    with serve() as client:
        assert client.get("/readyz").status_code == 200
        model = client.app.state.services.model
        model.engine = Watched(model.engine, after=corrupt)
        eventually(lambda: client.get("/livez").status_code == 503)
        assert {client.get(path).json()["detail"] for path in ("/livez", "/readyz")} == {WRONG}
        assert client.post("/classify", content=star).status_code == 503
    assert "wrong numbers on CPUExecutionProvider" in caplog.text


def test_a_replica_whose_weights_are_written_to_fails(serve, tmp_path, monkeypatch):
    bundle = shutil.copytree(DEMO_BUNDLE, tmp_path / "bundle")
    monkeypatch.setattr("app.backend.WATCH_S", 0.05)
    with serve(bundle=bundle) as client:
        assert client.get("/readyz").status_code == 200
        (bundle / "weights.bin").touch()
        eventually(lambda: client.get("/livez").status_code == 503)
        assert client.get("/readyz").json()["detail"] == CHANGED


def test_a_deadline_that_has_passed_is_503_and_nothing_runs(client, star, watched):
    answer = client.post("/classify", content=star, headers={"X-Request-Timeout": "0.000001"})
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:vit-serve:problem:deadline-exceeded")
    assert int(answer.headers["retry-after"]) >= 1
    assert (client.app.state.services.admission.images, watched.runs) == (0, [])
