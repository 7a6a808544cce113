"""tests/gpu: the parts that need no GPU, on the CPU with the demo bundle."""

import json

import numpy as np
import pytest

from app.bundle import load_bundle
from app.settings import DEMO_BUNDLE
from tests.gpu import check, parity, serving

BUNDLE = load_bundle(DEMO_BUNDLE)


def test_rates_of_the_service():
    rows = serving.served("demo", DEMO_BUNDLE, device="cpu", seconds=0.5, connections=(1, 3), generators=2)
    assert [(row["answer"], row["connections"]) for row in rows] == [
        ("labels", 1),
        ("labels", 3),
        ("labels and maps", 1),
        ("labels and maps", 3),
    ]
    for row in rows:
        assert float(row["images/s"]) > 1
        assert 0 < float(row["p50, ms"]) <= float(row["p99, ms"])
        assert float(row["start to ready, s"]) > 0.1
        assert row["batches of"] in (1, 2, 4, 8)


def test_an_engine_agrees_with_itself_and_not_with_another_image():
    cpu, images = parity.open_on_cpu(BUNDLE), parity.pictures(BUNDLE, 24)
    (row,) = parity.parity("demo", cpu, cpu, images[:4], 1e-6)
    assert row["logits"] == 0
    assert row["share of images with the same top class"] == 1
    parity.check_batches(cpu, images, 1e-3)

    class Turned:
        def run(self, graph, images):
            return cpu.run(graph, images[::-1])

    with pytest.raises(AssertionError):
        parity.parity("demo", Turned(), cpu, images[:4], 1e-3)
    with pytest.raises(AssertionError):
        parity.check_batches(Turned(), images, 1e-3)


def test_a_section_that_fails_is_named_and_the_others_write_their_tables(tmp_path, monkeypatch, capsys):
    def wrong(place):
        assert np.inf < 1

    rows = [{"bundle": "a", "logits": 1.0}, {"bundle": "b", "lens": 2.0}]
    monkeypatch.setitem(check.SECTIONS, "parity", wrong)
    monkeypatch.setitem(check.SECTIONS, "speed", lambda place: {"runs": rows})
    with pytest.raises(SystemExit, match="failed: parity"):
        check.main([str(tmp_path / "bundles"), str(tmp_path / "out"), "parity", "speed"])
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["speed.json"]
    found = json.loads((tmp_path / "out" / "speed.json").read_text())
    assert found["tables"]["runs"][1] == {"bundle": "b", "logits": "", "lens": 2.0}
    assert found["measured"]["cores"] >= 1
    assert "| bundle | logits | lens |" in capsys.readouterr().out
