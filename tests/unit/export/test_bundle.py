"""export/: a bundle is written when it is right, and not at all otherwise."""

import dataclasses
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from app.bundle import load_bundle
from app.inference.familiarity import open_familiarity
from app.inference.openvino import ov as openvino
from app.settings import DEMO_BUNDLE
from export.bundle import write_bundle
from export.graphs import EVIDENCE, MAPS
from export.image_spec import image_spec
from export.images import Images, reference_pixels
from export.parity import ParityError
from model.checkpoints import load_checkpoint
from tests.support.engines import ARRANGEMENTS, engine_of, model_of
from tests.support.familiar import DRAWN, knowing
from tests.support.switches import JOINED
from tests.support.toy import toy_checkpoint

MANY = "parallel branches"
LOWERED = {"int8": "rotary positions and SwiGLU", "bf16": "attention pooling", "fp16": "attention pooling"}


def test_a_network_of_many_switches_is_exported_and_checked(switched):
    """test_both_engines.py has every switch."""
    folder, config = switched(MANY), toy_checkpoint(**JOINED[MANY]).config
    manifest = load_bundle(folder).manifest
    assert (manifest.pool, manifest.tokens.prefix) == (config.pool, config.prefix)
    parity = manifest.parity
    assert parity["logits"] < 1e-4
    assert max(parity[name] for name in ("attention", "rollout", "evidence", "receipt")) < 5e-5
    for kind in ARRANGEMENTS:
        model_of(folder, engine_of(folder, kind)).warm_up()
    graph = onnx.load(folder / "classify.onnx", load_external_data=False).graph
    assert sum(node.op_type == "MultiHeadAttention" for node in graph.node) == manifest.layers


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


@pytest.mark.parametrize("precision", LOWERED)
def test_lower_precision_is_measured_instead(switched, precision):
    folder = switched(LOWERED[precision], precision)
    manifest = load_bundle(folder).manifest
    assert manifest.precision == precision
    limit = {"int8": 0.2, "bf16": 0.05, "fp16": 0.01}[precision]
    assert 1e-5 < manifest.parity["logits"] < limit
    assert max(manifest.parity["evidence"], manifest.parity["receipt"]) < limit
    assert manifest.agreement["pictures"] == 96
    assert 0 < manifest.agreement["probability_mean"] <= manifest.agreement["probability_max"] < limit
    engine = engine_of(folder, "openvino" if precision == "bf16" else "onnxruntime")
    model = model_of(folder, engine)
    model.warm_up()
    assert max(model.known.largest.values()) <= 0.26  # a quarter, but for shortened numbers
    if precision == "fp16":  # for GPUs: a processor computes it in float32
        assert {engine_of(folder, kind).computes_in for kind in ("openvino", "onnxruntime")} == {"fp32"}
    explain = engine.run("explain", np.zeros((2, 24, 40, 3), np.uint8))
    assert {values.dtype for name, values in explain.items() if name != "classes"} == {np.dtype(np.float32)}


@pytest.mark.parametrize(("precision", "source"), [("fp16", "fit"), ("int8", "folder")])
def test_a_bundle_knows_what_its_checkpoint_has_learned_or_the_images_of_a_folder(tmp_path, precision, source):
    checkpoint, spec = knowing(toy_checkpoint(depth=1)), image_spec(toy_checkpoint().preprocessing)
    pixels = reference_pixels(spec, 60)
    files = tuple(Path(f"{number}.png") for number in range(60))
    given = Images(source="folder", ranges=pixels[:12], judged=pixels[12:], labels=None, files=files)
    out = tmp_path / "bundle"
    manifest = write_bundle(
        checkpoint, out, replace=False, precision=precision, images=given if source == "folder" else None
    )
    familiarity = manifest.familiarity
    assert (familiarity.held_out, familiarity.source) == (48, source)
    assert load_bundle(out).manifest == manifest
    engine, known = engine_of(out), open_familiarity(load_bundle(out))
    outputs = engine.run("classify", pixels)
    rows = [dict(zip(outputs, row, strict=True)) for row in zip(*outputs.values(), strict=True)]
    assert np.mean([known.of(row) for row in rows]) > 0.4  # most of them are known
    of_these = (
        outputs["embedding"][12:]
        if source == "folder"
        else engine.run("classify", reference_pixels(spec, DRAWN))["embedding"]
    )
    assert manifest.mean == pytest.approx(of_these.mean(0), abs=0.02)  # fp16 rounds
    model_of(out, engine).warm_up()  # the known answer has `unlike` too
    assert "unlike" in manifest.known_answer.sums


def test_without_instructions_for_it_a_bundle_in_bf16_is_computed_in_float32(switched, monkeypatch):
    folder = switched(LOWERED["bf16"], "bf16")
    pixels = reference_pixels(load_bundle(folder).manifest.image, 3)
    capable = engine_of(folder, "openvino").computes_in
    assert capable == ("bf16" if "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES") else "fp32")
    monkeypatch.setattr(openvino.Core, "get_property", lambda *_: ["FP32"])
    ours, theirs = engine_of(folder, "openvino"), engine_of(folder, "onnxruntime")
    assert (ours.computes_in, theirs.computes_in) == ("fp32", "fp32")
    found, expected = ours.run("explain", pixels), theirs.run("explain", pixels)
    assert found["attention"] == pytest.approx(expected["attention"], abs=1e-3)
    assert found["logits"] == pytest.approx(expected["logits"], abs=2e-3 * float(np.abs(expected["logits"]).max()))


def test_the_demo_model_names_the_same_shapes_in_int8(int8_bundle):
    manifest = load_bundle(int8_bundle).manifest
    assert manifest.agreement["top1"] >= 0.99
    assert manifest.agreement["accuracy"] == pytest.approx(manifest.figures["top1_accuracy"], abs=0.02)
    assert (int8_bundle / "weights.bin").stat().st_size < 0.45 * (DEMO_BUNDLE / "weights.bin").stat().st_size


@pytest.mark.parametrize(("precision", "kind"), [("int8", kind) for kind in ARRANGEMENTS])
def test_an_images_numbers_are_the_same_alone_and_among_others(switched, precision, kind):
    folder = switched(LOWERED[precision], precision)
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


def test_exporting_the_demo_model_again_gives_the_committed_bundle(tmp_path):
    manifest = write_bundle(load_checkpoint("model/demo/shapes.safetensors"), tmp_path / "demo", replace=False)
    committed = load_bundle(DEMO_BUNDLE).manifest
    of_pictures = {"agreement", "calibration", "explains", "familiarity", "held_out", "mean"}
    varying = {"made_with", "files", "parity", "known_answer", *of_pictures}
    assert manifest.model_dump(exclude=varying) == committed.model_dump(exclude=varying)
    answer, other = manifest.known_answer, committed.known_answer
    assert answer.model_dump(exclude={"logits", "sums"}) == other.model_dump(exclude={"logits", "sums"})
    assert answer.logits == pytest.approx(other.logits, abs=1e-4)
    assert all(numbers == pytest.approx(other.sums[name], abs=1e-4) for name, numbers in answer.sums.items())
    pixels = reference_pixels(manifest.image, 6)
    ours, theirs = (engine_of(folder).run("explain", pixels) for folder in (tmp_path / "demo", DEMO_BUNDLE))
    for name, values in ours.items():
        assert values == pytest.approx(theirs[name], abs=1e-5), name


def test_a_wrong_graph_is_not_written(tmp_path, already_traced):
    changed = toy_checkpoint()
    with torch.no_grad():
        changed.model.head.weight *= 1.001  # the graph is that of the toy before
    with pytest.raises(ParityError, match="PyTorch and ONNX Runtime differ by"):
        write_bundle(changed, tmp_path / "wrong", replace=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("name", ["", "model.safetensors"])
def test_files_that_are_no_bundle_are_never_replaced(tmp_path, name, replace):
    """A folder of bundles or of weights, or the file of weights itself."""
    mine = tmp_path / "mine" / "model.safetensors"
    mine.parent.mkdir()
    mine.write_text("precious")
    with pytest.raises(FileExistsError, match="exists and is not a bundle"):
        write_bundle(toy_checkpoint(depth=1), tmp_path / "mine" / name, replace=replace)
    assert mine.read_text() == "precious"


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
    write_bundle(dataclasses.replace(toy_checkpoint(), name="second"), out, replace=True)
    assert load_bundle(out).manifest.name == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
