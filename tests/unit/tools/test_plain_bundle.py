"""tests/benchmarks/servers/plain_bundle.py: this server with a plain export, beside its own graph."""

import numpy as np
import pytest

from app.bundle import load_bundle
from app.inference.cpu import OnnxEngine
from app.inference.gears import Gears
from export.bundle import write_bundle
from tests.benchmarks.plain_export import export_plainly
from tests.benchmarks.random_model import random_checkpoint
from tests.benchmarks.servers.plain_bundle import write_plain_bundle


def test_a_plain_bundle_gives_the_same_numbers_by_another_graph(tmp_path):
    checkpoint = random_checkpoint("mu/16", image_size=(32, 32))
    write_bundle(checkpoint, tmp_path / "ours", replace=False)
    export_plainly(checkpoint.model, tmp_path / "plain.onnx")
    write_plain_bundle(tmp_path / "ours", tmp_path / "plain.onnx", checkpoint.preprocessing, tmp_path / "plain")
    pixels = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    answers = []
    for name in ("ours", "plain"):
        bundle = load_bundle(tmp_path / name)
        bundle.check_files()
        engine = OnnxEngine(
            folder=bundle.folder,
            image_size=(32, 32),
            gears=Gears(cores=1),
            known_answer=bundle.manifest.known_answer,
        )
        engine.warm_up()
        answers.append([engine.run(graph, pixels)["logits"] for graph in ("classify", "explain")])
    assert np.array(answers[1]) == pytest.approx(np.array(answers[0]), abs=1e-4)
    assert (tmp_path / "ours" / "classify.onnx").read_bytes() != (tmp_path / "plain" / "classify.onnx").read_bytes()
