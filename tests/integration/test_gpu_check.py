"""lab/gpu: the parts that need no GPU, on the CPU with the demo bundle."""

import json

import pytest

from app.bundle import load_bundle
from app.settings import DEMO_BUNDLE
from lab.gpu import bundles, check, parity, scarcity, serving
from lab.gpu.bundles import Place


@pytest.fixture(autouse=True)
def without_a_gpu(monkeypatch):
    for section in (scarcity, serving):
        monkeypatch.setattr(section, "DEVICE", "cpu")
    monkeypatch.setattr(serving, "GENERATORS", 2)


@pytest.mark.parametrize(("replicas", "connections"), [(1, (1, 3)), (2, (4,))])
def test_rates_of_replicas(replicas, connections):
    rows = serving.served("demo", DEMO_BUNDLE, replicas=replicas, connections=connections, seconds=0.5)
    measured = [(row["answer"], row["connections"]) for row in rows]
    assert measured == [(answer, count) for answer in ("labels", "labels and maps") for count in connections]
    for row in rows:
        assert float(row["images/s"]) > 1
        assert 0 < float(row["p50, ms"]) <= float(row["p99, ms"])


def test_a_start_is_told_with_its_batches_and_a_refusal_with_its_reason():
    row = scarcity.started(DEMO_BUNDLE, 0.6, max_batch=2)
    assert (row["ready"], row["failed"]) == ("yes", 0)
    refused = scarcity.started(DEMO_BUNDLE, 0.6, max_batch=-1)
    assert (refused["ready"], "VIT_MAX_BATCH" in str(refused["last line of its log"])) == ("no", True)


def test_an_engine_agrees_with_itself_and_not_with_another_image():
    bundle = load_bundle(DEMO_BUNDLE)
    cpu, images = parity.open_on_cpu(bundle), parity.pictures(bundle, 24)
    (row,) = parity.parity("demo", cpu, cpu, images[:4], 1e-6)
    assert (row["logits"], row["share of images with the same top class"]) == (0, 1)
    parity.check_batches(cpu, images, 1e-3)

    class Turned:
        def run(self, graph, images, classes=()):
            return cpu.run(graph, images[::-1])

    with pytest.raises(AssertionError):
        parity.parity("demo", Turned(), cpu, images[:4], 1e-3)
    with pytest.raises(AssertionError):
        parity.check_batches(Turned(), images, 1e-3)


def test_only_bundles_that_are_missing_are_exported(tmp_path, monkeypatch):
    monkeypatch.setattr(bundles, "MODELS", {"toy": ("mu/8", {"image_size": (32, 32), "num_classes": 0, "depth": 1})})
    monkeypatch.setattr(bundles, "PRECISIONS", (("toy", "fp16"),))
    place = Place(folder=tmp_path, names=(), seconds=1)
    assert len(bundles.measure(place)["exported"]) == 1
    assert place.bundles()["toy-fp16"].manifest.precision == "fp16"
    assert place.bundles("toy-int8") == {}
    assert bundles.measure(place)["exported"] == []


def test_each_section_writes_its_tables_and_one_that_fails_is_named(tmp_path, monkeypatch, capsys):
    rows = [{"bundle": "a", "logits": 1.0}, {"bundle": "b", "lens": 2.0}]
    monkeypatch.setitem(check.SECTIONS, "parity", lambda place: 1 / 0)
    monkeypatch.setitem(check.SECTIONS, "speed", lambda place: {"runs": rows})
    with pytest.raises(SystemExit, match="failed: parity"):
        check.main([str(tmp_path / "bundles"), str(tmp_path / "out"), "parity", "speed"])
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["speed.json"]
    found = json.loads((tmp_path / "out" / "speed.json").read_text())
    assert found["tables"]["runs"][1] == {"bundle": "b", "logits": "", "lens": 2.0}
    assert found["measured"]["cores"] >= 1
    assert "| bundle | logits | lens |" in capsys.readouterr().out
