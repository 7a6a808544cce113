"""export/: a bundle is written when it is right, and not at all otherwise."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from app.bundle import load_bundle
from app.inference.familiarity import open_familiarity
from app.inference.openvino import ov as openvino
from app.settings import DEMO_BUNDLE
from export.bundle import write_bundle
from export.calibration import Uncalibrated
from export.graphs import EVIDENCE, MAPS, ExplainGraph
from export.image_spec import image_spec
from export.images import drawn_images, reference_pixels
from export.parity import ParityError
from export.precision import model_for
from export.reference import normalised
from model.checkpoints import load_checkpoint
from tests.support.engines import ARRANGEMENTS, engine_of, model_of
from tests.support.familiar import DRAWN
from tests.support.operators import operators_in_torch
from tests.support.toy import toy_checkpoint
from tests.support.traced import graph_in


def test_too_few_images_for_a_temperature_are_refused_before_the_export(monkeypatch, tmp_path):
    monkeypatch.delattr("export.bundle.write_graphs")
    drawn = drawn_images(image_spec(toy_checkpoint().preprocessing), labels=())
    few = replace(drawn, labels=np.zeros(len(drawn.judged), np.int64))
    with pytest.raises(Uncalibrated, match="needs 100 labelled images"):
        write_bundle(toy_checkpoint(), tmp_path / "b", replace=False, images=few, calibrate=True)


def test_a_network_without_a_head_gives_embeddings_and_maps(headless_bundle, tmp_path, capsys):
    manifest = load_bundle(headless_bundle).manifest
    assert (manifest.labels, manifest.features, manifest.agreement) == ((), 32, None)
    assert manifest.parity["embedding"] < 1e-4
    assert manifest.parity["logits"] is None
    engine, pixels = engine_of(headless_bundle), reference_pixels(manifest.image, 3)
    assert set(engine.run("classify", pixels)) == {"embedding"}
    assert set(engine.run("explain", pixels)) == set(manifest.explains) == {"embedding", *MAPS, *EVIDENCE}
    lower = write_bundle(toy_checkpoint(num_classes=0, depth=1), tmp_path / "toy", replace=False, precision="bf16")
    assert (lower.agreement, lower.parity["logits"]) == (None, None)  # nor has it labels to agree about
    said = "This processor computes bf16 in fp32: figures show only a part of the rounding." in capsys.readouterr().err
    assert said == (engine_of(tmp_path / "toy", "openvino").computes_in == "fp32")


LIMITS = {"int8": 0.2, "bf16": 0.05, "fp16": 0.01}


@pytest.mark.parametrize("precision", LIMITS)
def test_lower_precision_is_measured_instead(lowered, precision):
    folder, limit = lowered(precision), LIMITS[precision]
    manifest = load_bundle(folder).manifest
    assert manifest.precision == precision
    assert 1e-5 < manifest.parity["logits"] < limit
    assert max(manifest.parity["evidence"], manifest.parity["receipt"]) < limit
    assert [manifest.agreement[name] for name in ("source", "pictures", "ranges")] == ["drawn", 96, 24]
    assert 0 < manifest.agreement["probability_mean"] <= manifest.agreement["probability_max"] < limit
    engine = engine_of(folder, "openvino" if precision == "bf16" else "onnxruntime")
    model = model_of(folder, engine)
    model.warm_up()
    assert max(model.known.largest.values()) <= 0.26  # a quarter, but for shortened numbers
    if precision == "fp16":  # for GPUs: a processor computes it in float32
        assert {engine_of(folder, kind).computes_in for kind in ("openvino", "onnxruntime")} == {"fp32"}
    explain = engine.run("explain", np.zeros((2, 24, 40, 3), np.uint8))
    assert {values.dtype for name, values in explain.items() if name != "classes"} == {np.dtype(np.float32)}


def test_a_bundle_knows_what_its_checkpoint_has_learned(lowered):
    """integration/test_calibration.py has one that knows the images of a folder."""
    bundle = load_bundle(lowered("fp16"))
    familiarity = bundle.manifest.familiarity
    assert (familiarity.held_out, familiarity.source) == (DRAWN, "fit")
    outputs, known = (
        engine_of(bundle.folder).run("classify", reference_pixels(bundle.manifest.image, DRAWN)),
        open_familiarity(bundle),
    )
    rows = [dict(zip(outputs, row, strict=True)) for row in zip(*outputs.values(), strict=True)]
    assert np.mean([known.of(row) for row in rows]) > 0.4  # most of them are known
    assert bundle.manifest.mean == pytest.approx(outputs["embedding"].mean(0), abs=0.02)  # fp16 rounds
    assert "unlike" in bundle.manifest.known_answer.sums


def test_without_instructions_for_it_a_bundle_in_bf16_is_computed_in_float32(lowered, monkeypatch):
    folder = lowered("bf16")
    pixels = reference_pixels(load_bundle(folder).manifest.image, 3)
    capable = engine_of(folder, "openvino").computes_in
    assert capable == ("bf16" if "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES") else "fp32")
    monkeypatch.setattr(openvino.Core, "get_property", lambda *_: ["FP32"])
    ours, theirs = engine_of(folder, "openvino"), engine_of(folder, "onnxruntime")
    assert (ours.computes_in, theirs.computes_in) == ("fp32", "fp32")
    found, expected = ours.run("explain", pixels), theirs.run("explain", pixels)
    assert found["attention"] == pytest.approx(expected["attention"], abs=1e-3)
    assert found["logits"] == pytest.approx(expected["logits"], abs=2e-3 * float(np.abs(expected["logits"]).max()))


def test_the_demo_model_names_the_same_shapes_in_int8(monkeypatch):
    monkeypatch.setattr("export.images.HELD_OUT", 200)
    demo = load_checkpoint("model/demo/shapes.safetensors")
    images = drawn_images(image_spec(demo.preprocessing), labels=demo.labels)
    graph = ExplainGraph(replace(demo, model=model_for(demo, "int8", images.ranges)), "int8")
    with operators_in_torch(), torch.inference_mode():
        found, *_ = graph(torch.from_numpy(images.judged))
        expected = demo.model(normalised(images.judged, demo))
    found, expected = found.argmax(1), expected.argmax(1)
    assert (found == expected).float().mean() >= 0.99
    right = (found.numpy() == images.labels).mean()
    assert right == pytest.approx(demo.figures["top1_accuracy"], abs=0.02)


@pytest.mark.parametrize("kind", ARRANGEMENTS)
def test_an_images_numbers_in_int8_are_the_same_alone_and_among_others(lowered, kind):
    folder = lowered("int8")
    pixels = reference_pixels(load_bundle(folder).manifest.image, 8)
    pixels[2:6] //= 8  # a range of the whole batch would be wrong for dark images
    engine = engine_of(folder, kind)
    single = engine_of(folder, "openvino") if kind == "openvino side by side" else engine
    for graph in ("classify", "explain"):
        alone = [single.run(graph, [image]) for image in pixels]
        for size in (1, 4):
            found = [engine.run(graph, part) for part in np.split(pixels, 8 // size)]
            for name in alone[0]:
                expected, numbers = (np.concatenate([rows[name] for rows in runs]) for runs in (alone, found))
                assert np.abs(numbers - expected).max() <= 1e-5 * np.abs(expected).max(), (graph, size, name)


def test_exporting_the_demo_model_again_gives_the_committed_bundle(tmp_path, monkeypatch):
    """Whose graphs give the numbers of the checkpoint."""
    monkeypatch.setattr("export.bundle.trace", partial(graph_in, DEMO_BUNDLE))
    manifest = write_bundle(load_checkpoint("model/demo/shapes.safetensors"), tmp_path / "demo", replace=False)
    committed = load_bundle(DEMO_BUNDLE).manifest
    of_pictures = {"agreement", "calibration", "explains", "familiarity", "held_out", "mean"}
    varying = {"made_with", "files", "parity", "known_answer", *of_pictures}
    assert manifest.model_dump(exclude=varying) == committed.model_dump(exclude=varying)
    answer, other = manifest.known_answer, committed.known_answer
    assert answer.model_dump(exclude={"logits", "sums"}) == other.model_dump(exclude={"logits", "sums"})
    assert answer.logits == pytest.approx(other.logits, abs=1e-4)
    assert all(numbers == pytest.approx(other.sums[name], abs=1e-4) for name, numbers in answer.sums.items())


def test_a_wrong_graph_is_not_written(tmp_path, already_traced):
    changed = toy_checkpoint()
    with torch.no_grad():
        changed.model.head.weight *= 1.001  # the graph is that of the toy before
    with pytest.raises(ParityError, match="PyTorch and ONNX Runtime differ by"):
        write_bundle(changed, tmp_path / "wrong", replace=False)
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_that_another_export_wrote_meanwhile_is_kept(tmp_path, monkeypatch):
    out = tmp_path / "taken"

    def fill(*_, **__):
        out.mkdir()
        (out / "manifest.json").write_text("theirs")

    monkeypatch.setattr("export.bundle._fill", fill)
    with pytest.raises(FileExistsError, match="exists; --replace replaces it"):
        write_bundle(toy_checkpoint(depth=1), out, replace=False)
    assert (out / "manifest.json").read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [out]


def test_a_bundle_is_kept_unless_it_may_be_replaced(tmp_path, already_traced):
    out = tmp_path / "taken"
    out.mkdir()
    (out / "manifest.json").write_text("precious")
    with pytest.raises(FileExistsError):
        write_bundle(toy_checkpoint(), out, replace=False)
    assert (out / "manifest.json").read_text() == "precious"
    write_bundle(replace(toy_checkpoint(), name="second"), out, replace=True)
    assert load_bundle(out).manifest.name == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
