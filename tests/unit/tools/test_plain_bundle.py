"""tests/benchmarks/servers/plain_bundle.py: this server with a plain export, beside its own graph."""

import numpy as np
import pytest

from app.bundle import load_bundle
from app.inference.device import open_model
from app.settings import Settings
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
        model = open_model(settings=Settings(device="cpu", engine="onnxruntime"), bundle=load_bundle(folder))
        answers.append({**model.engine.run("classify", pixels), "explained": model.engine.run("explain", pixels)})
    own, plain = (answer.pop("explained") | answer for answer in answers)
    assert own.keys() == plain.keys()
    for name, numbers in own.items():
        assert plain[name] == pytest.approx(numbers, abs=1e-4), name
    assert (oblong_bundle / "classify.onnx").read_bytes() != (tmp_path / "plain" / "classify.onnx").read_bytes()
