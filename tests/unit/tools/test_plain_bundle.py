"""tests/benchmarks/servers/plain_bundle.py: this server with a plain export, beside its own graph."""

import numpy as np
import pytest

from app.bundle import load_bundle
from app.inference.cpu import OnnxEngine
from app.inference.gears import Gears
from tests.benchmarks.plain_export import export_plainly
from tests.benchmarks.servers.plain_bundle import write_plain_bundle
from tests.support.toy import toy_checkpoint


def test_a_plain_bundle_gives_the_same_numbers_by_another_graph(tmp_path, oblong_bundle):
    checkpoint = toy_checkpoint()
    export_plainly(checkpoint.model, tmp_path / "plain.onnx")
    write_plain_bundle(oblong_bundle, tmp_path / "plain.onnx", checkpoint.preprocessing, tmp_path / "plain")
    pixels = np.random.default_rng(0).integers(0, 256, (3, 24, 40, 3), dtype=np.uint8)
    answers = []
    for folder in (oblong_bundle, tmp_path / "plain"):
        bundle = load_bundle(folder)
        bundle.check_files()
        engine = OnnxEngine(
            folder=bundle.folder,
            image_size=(24, 40),
            gears=Gears(cores=1),
            known_answer=bundle.manifest.known_answer,
        )
        engine.warm_up()
        answers.append([engine.run(graph, pixels)["logits"] for graph in ("classify", "explain")])
    assert np.array(answers[1]) == pytest.approx(np.array(answers[0]), abs=1e-4)
    assert (oblong_bundle / "classify.onnx").read_bytes() != (tmp_path / "plain" / "classify.onnx").read_bytes()
