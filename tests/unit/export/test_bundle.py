"""export/: a bundle is written when it is right, and not at all otherwise."""

import dataclasses

import numpy as np
import onnx
import pytest
import torch
from PIL import Image

from app.bundle import load_bundle
from app.images.preprocess import preprocess
from app.inference.cpu import OnnxEngine
from app.inference.gears import Gears
from app.settings import DEMO_BUNDLE
from export.bundle import write_bundle
from export.evidence import evidence
from export.graphs import ClassifyGraph
from export.images import reference_pixels
from export.parity import ParityError
from export.reference import normalised, reference
from model.checkpoints import load_checkpoint
from model.checkpoints.families.native import save
from tests.support.switches import SWITCHES
from tests.support.toy import toy_checkpoint


def toy_reference(pixels):
    return reference(toy_checkpoint(), pixels, np.zeros((len(pixels), 1), np.int64))


def engine_of(folder, manifest) -> OnnxEngine:
    return OnnxEngine(folder=folder, image_size=manifest.image.size, gears=Gears(cores=1))


def engine_with_answer(folder, manifest) -> OnnxEngine:
    answer = manifest.known_answer
    return OnnxEngine(
        folder=folder, image_size=manifest.image.size, gears=Gears(cores=1), max_batch=4, known_answer=answer
    )


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_the_bundle_gives_the_models_numbers_at_any_batch(oblong_bundle, batch):
    bundle = load_bundle(oblong_bundle)
    bundle.check_files()
    rng = np.random.default_rng(batch)
    pictures = [Image.fromarray(rng.integers(0, 256, (50, 70, 3), dtype=np.uint8)) for _ in range(batch)]
    pixels = np.stack([preprocess(picture, bundle.manifest.image.framing)[0] for picture in pictures])
    expected = toy_reference(pixels)
    engine = engine_of(oblong_bundle, bundle.manifest)
    found = engine.run("explain", pixels)
    assert np.abs(found["logits"] - expected["logits"]).max() < 1e-4 * np.abs(expected["logits"]).max()
    assert np.abs(found["attention"] - expected["attention"]).max() < 1e-5
    assert np.abs(found["rollout"] - expected["rollout"]).max() < 1e-5
    assert found["attention"].shape == (batch, 2, 2, 16)
    assert found["attention"].sum(axis=-1) == pytest.approx(1, abs=1e-5)
    assert found["rollout"].sum(axis=-1) == pytest.approx(1, abs=1e-5)
    lean = engine.run("classify", pixels)["logits"]
    assert np.abs(lean - expected["logits"]).max() < 1e-4 * np.abs(expected["logits"]).max()


def test_attention_of_the_toy_is_far_from_uniform(oblong_bundle):
    """Else the comparisons above would say little."""
    noise = np.random.default_rng(0).integers(0, 256, (1, 24, 40, 3), dtype=np.uint8)
    assert toy_reference(noise)["attention"].max() > 0.3


@pytest.mark.parametrize("changes", SWITCHES.values(), ids=SWITCHES)
def test_every_switch_is_exported_and_checked(tmp_path, changes):
    checkpoint = toy_checkpoint(**changes)
    manifest = write_bundle(checkpoint, tmp_path / "toy", replace=False)
    assert manifest.pool == changes.get("pool", "cls")
    assert manifest.tokens.prefix == checkpoint.config.prefix
    assert manifest.parity.logits < 1e-4
    assert max(manifest.parity.attention, manifest.parity.rollout) < 5e-5
    assert max(manifest.parity.evidence, manifest.parity.receipt) < 5e-5
    engine_with_answer(tmp_path / "toy", manifest).warm_up()
    whole = changes.get("pool") in ("map", "map_all") or "head_layers" in changes
    assert ("lens" in manifest.explains) == (not whole)
    graph = onnx.load(tmp_path / "toy" / "classify.onnx", load_external_data=False).graph
    assert sum(node.op_type == "MultiHeadAttention" for node in graph.node) == manifest.layers


@pytest.mark.parametrize("precision", ["fp32", "int8", "fp16"])
def test_a_network_without_a_head_gives_embeddings_and_maps(tmp_path, precision):
    checkpoint = toy_checkpoint(num_classes=0)
    manifest = write_bundle(checkpoint, tmp_path / "toy", replace=False, precision=precision)
    assert (manifest.labels, manifest.features, manifest.agreement) == ((), 32, None)
    assert manifest.parity.embedding < (1e-4 if precision == "fp32" else 0.5)
    assert manifest.parity.logits is None
    engine, pixels = engine_of(tmp_path / "toy", manifest), reference_pixels(manifest.image, 3)
    with torch.no_grad():
        expected = checkpoint.model(normalised(pixels, checkpoint)).numpy()
    lean, explained = engine.run("classify", pixels), engine.run("explain", pixels)
    assert set(lean) == {"embedding"}
    assert set(explained) == set(manifest.explains) == {"embedding", "attention", "rollout", "distance"}
    allowed = manifest.parity.embedding * np.abs(expected).max() * 1.5
    assert np.abs(lean["embedding"] - expected).max() <= allowed
    assert np.abs(explained["embedding"] - expected).max() <= allowed


@pytest.mark.parametrize(
    ("precision", "switches"),
    [
        ("int8", "registers, LayerScale, norms of Q and K, SwiGLU, norm after the pool"),
        ("int8", "rotary positions of DINOv3, registers"),
        ("fp16", "attention pooling"),
        ("fp16", "attention pooling and cosine head"),
        ("fp16", "rotary positions beside learned ones, norm in SwiGLU"),
    ],
)
def test_lower_precision_is_measured_instead(tmp_path, precision, switches):
    manifest = write_bundle(toy_checkpoint(**SWITCHES[switches]), tmp_path / "toy", replace=False, precision=precision)
    assert manifest.precision == precision
    limit = {"int8": 0.2, "fp16": 0.01}[precision]
    assert 1e-5 < manifest.parity.logits < limit
    assert max(manifest.parity.evidence, manifest.parity.receipt) < limit
    assert manifest.agreement is not None
    assert manifest.agreement.pictures == 96
    assert 0 < manifest.agreement.probability_mean <= manifest.agreement.probability_max < limit
    engine = engine_with_answer(tmp_path / "toy", manifest)
    engine.warm_up()
    assert max(engine.deviation().values()) <= 0.26  # a quarter, but for shortened numbers
    explain = engine.run("explain", np.zeros((2, 24, 40, 3), np.uint8))
    assert {values.dtype for name, values in explain.items() if name != "classes"} == {np.dtype(np.float32)}


def test_the_demo_model_names_the_same_shapes_in_int8(int8_bundle):
    manifest = load_bundle(int8_bundle).manifest
    assert manifest.agreement is not None
    assert manifest.agreement.top1 >= 0.99
    assert manifest.agreement.accuracy == pytest.approx(manifest.figures["top1_accuracy"], abs=0.02)
    assert (int8_bundle / "weights.bin").stat().st_size < 0.45 * (DEMO_BUNDLE / "weights.bin").stat().st_size


def test_another_image_size_is_interpolated_and_checked(tmp_path):
    save(toy_checkpoint(depth=1), tmp_path / "toy.safetensors")
    tall = load_checkpoint(tmp_path / "toy.safetensors", overrides={"image_size": "40,24"})
    manifest = write_bundle(tall, tmp_path / "tall", replace=False)
    assert manifest.tokens.grid == (5, 3)
    assert manifest.image.resize.size == (53, 29)  # the crop still cuts off the same share


def test_exporting_the_demo_model_again_gives_the_committed_bundle(tmp_path):
    manifest = write_bundle(load_checkpoint("model/demo/shapes.safetensors"), tmp_path / "demo", replace=False)
    committed = load_bundle(DEMO_BUNDLE).manifest
    varying = {"made_with", "files", "parity", "known_answer"}
    assert manifest.model_dump(exclude=varying) == committed.model_dump(exclude=varying)
    answer, other = manifest.known_answer, committed.known_answer
    assert answer.model_dump(exclude={"logits", "sums"}) == other.model_dump(exclude={"logits", "sums"})
    assert answer.logits == pytest.approx(other.logits, abs=1e-4)
    assert all(numbers == pytest.approx(other.sums[name], abs=1e-4) for name, numbers in answer.sums.items())
    pixels = reference_pixels(manifest.image, 6)
    ours, theirs = (engine_of(folder, manifest).run("explain", pixels) for folder in (tmp_path / "demo", DEMO_BUNDLE))
    for name, values in ours.items():
        assert values == pytest.approx(theirs[name], abs=1e-5), name


def test_a_wrong_graph_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(ClassifyGraph, "answer", _off_by_a_little(ClassifyGraph.answer))
    with pytest.raises(ParityError, match=r"logits: .* differ by"):
        write_bundle(toy_checkpoint(depth=1), tmp_path / "wrong", replace=False)
    assert list(tmp_path.iterdir()) == []


def test_wrong_evidence_is_not_written(tmp_path, monkeypatch):
    def without_constants(*arguments):
        parts = evidence(*arguments)
        return parts._replace(rest=parts.rest * torch.tensor([1.0, 0.0]))

    monkeypatch.setattr("export.graphs.evidence", without_constants)
    with pytest.raises(ParityError, match=r"evidence: .* differ by"):
        write_bundle(toy_checkpoint(depth=1), tmp_path / "wrong", replace=False)


def _off_by_a_little(answer):
    def wrong(self, tokens):
        logits, embedding = answer(self, tokens)
        return logits * torch.tensor(1.001), embedding

    return wrong


def test_what_is_there_is_kept_unless_it_may_be_replaced(tmp_path):
    small = toy_checkpoint(num_classes=0, depth=1)
    out = tmp_path / "taken"
    out.mkdir()
    (out / "mine.txt").write_text("precious")
    with pytest.raises(FileExistsError):
        write_bundle(small, out, replace=False)
    assert (out / "mine.txt").read_text() == "precious"
    renamed = dataclasses.replace(small, name="second")
    write_bundle(renamed, out, replace=True)
    assert load_bundle(out).manifest.name == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
