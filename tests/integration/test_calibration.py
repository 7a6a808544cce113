"""`python -m export --pictures FOLDER --calibrate`, and the scores of the bundle as they are served."""

import numpy as np
import pytest
from PIL import Image

from app.bundle import load_bundle
from app.inference.familiarity import open_familiarity
from app.inference.scoring import scores
from export.calibration import calibration_error
from export.command import main
from export.folder import read_folder
from export.image_spec import image_spec
from export.images import pixels, reference_images
from export.reference import normalised
from model.checkpoints.families.native import save
from tests.support.engines import engine_of
from tests.support.toy import toy_checkpoint

TOY = toy_checkpoint()


@pytest.fixture(scope="module")
def images(once):
    """160 scenes in folders called by the toy's labels; one in four is in the folder of what the toy sees in it."""

    def write(out):
        drawn = list(reference_images(160))
        seen = TOY.model(normalised(pixels(image_spec(TOY.preprocessing), drawn), TOY)).argmax(1)
        for number, image in enumerate(drawn):
            label = TOY.labels[int(seen[number]) if number % 4 == 0 else number % 7]
            path = out / label / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            image.save(path)

    return once("holiday", write)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint") / "toy.safetensors"
    save(TOY, path)
    return path


@pytest.fixture(scope="module")
def export(checkpoint):
    return lambda out, *options: main(["--checkpoint", str(checkpoint), "--out", str(out), *map(str, options)])


@pytest.fixture(scope="module")
def calibrated(images, export, once):
    """In int8, so that what is calibrated is not what PyTorch computes."""
    return once("calibrated", lambda out: export(out, "--pictures", images, "--calibrate", "--precision", "int8"))


def test_the_manifest_has_the_measurements_and_their_images(calibrated, images):
    bundle = load_bundle(calibrated)
    found, agreement = bundle.manifest.calibration, bundle.manifest.agreement
    assert (agreement["source"], agreement["ranges"], agreement["pictures"]) == ("folder", 40, 120)
    assert bundle.manifest.parity["pictures"] == 20  # 12 drawn and 8 given
    assert bundle.manifest.temperature == found["temperature"]
    assert found["temperature"] > 1.5  # the toy is sure, and mostly wrong
    assert found["error_after"] < found["error_before"]
    assert "holiday" not in (calibrated / "manifest.json").read_text()
    given = read_folder(images, TOY)
    batches = [given.judged[start : start + 8] for start in range(0, 120, 8)]
    engine = engine_of(bundle.folder)
    runs = [engine.run("classify", batch) for batch in batches]
    outputs = {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}
    logits = outputs["logits"]
    assert found["error_before"] == pytest.approx(calibration_error(logits, given.labels), abs=1e-6)
    assert agreement["accuracy"] == np.mean(logits.argmax(1) == given.labels)
    familiarity, known = bundle.manifest.familiarity, open_familiarity(bundle)
    assert (familiarity.held_out, familiarity.source) == (120, "folder")
    rows = [dict(zip(outputs, row, strict=True)) for row in zip(*outputs.values(), strict=True)]
    assert np.mean([known.of(row) for row in rows]) > 0.4  # most of them are known
    assert bundle.manifest.mean == pytest.approx(outputs["embedding"].mean(0), abs=1e-3)


def test_served_scores_have_the_temperature_and_logits_have_not(calibrated, serve, encode):
    bundle = load_bundle(calibrated)
    t = bundle.manifest.temperature
    noise = np.random.default_rng(0).integers(0, 256, (32, 48, 3), dtype=np.uint8)
    framed = noise[4:28, 4:44]  # what is left of it: it has the size to which images are resized
    sent = encode(Image.fromarray(noise))
    engine = engine_of(bundle.folder)
    lean_logits, logits = (engine.run(graph, framed[None])["logits"][0] for graph in ("classify", "explain"))
    with serve(bundle=calibrated, max_batch=1) as client:
        lean = client.post("/classify?top_k=7&attention=false", content=sent).json()["results"][0]
        kept = client.post("/classify?top_k=7", content=sent).json()["results"][0]
        report = client.get(f"{kept['attention']}/report").json()
        verified = client.post(f"{kept['attention']}/verify?steps=4&random_orders=1").json()
        evidence = client.get(f"{kept['attention']}?method=evidence&format=json").json()
    for result, of_graph in ((lean, lean_logits), (kept, logits)):
        expected = dict(enumerate(scores(of_graph / t, "softmax")))
        assert {p["index"]: p["score"] for p in result["predictions"]} == pytest.approx(expected, abs=1e-5)
    assert [p["index"] for p in kept["predictions"]] == list(np.argsort(-logits))
    assert report["predictions"][0]["score"] == pytest.approx(kept["predictions"][0]["score"])
    assert report["lens"]["scores"][-1] == pytest.approx([p["score"] for p in kept["predictions"][:5]], abs=1e-5)
    assert verified["score"] == pytest.approx(scores(lean_logits / t, "softmax")[verified["index"]], abs=1e-5)
    assert report["logit"] == pytest.approx(float(logits.max()), rel=1e-5)
    receipt = evidence["receipt"]
    assert receipt["logit"] == pytest.approx(float(logits.max()), rel=1e-5)
    assert sum(receipt.values()) == pytest.approx(2 * receipt["logit"])
    assert abs(receipt["rounding"]) > 1e-5 * abs(receipt["logit"])  # of int8: it is shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--calibrate", "--pictures", "{above}"], "labelled images"),
        (["--calibrate", "--pictures", "{images}", "--set", "score=sigmoid"], "softmax"),
    ],
)
def test_refusals_are_one_sentence_and_leave_nothing(images, export, tmp_path, options, message):
    above = tmp_path / "above"  # its only folder is not a label
    above.mkdir()
    (above / "images").symlink_to(images)
    with pytest.raises(SystemExit, match="not exported: ") as refusal:
        export(tmp_path / "out", *(option.format(images=images, above=above) for option in options))
    assert message in str(refusal.value)
    assert not (tmp_path / "out").exists()


def test_without_calibrate_it_is_measured_and_not_applied(images, export, tmp_path, capsys):
    export(tmp_path / "out", "--pictures", images)
    manifest = load_bundle(tmp_path / "out").manifest
    assert (manifest.temperature, manifest.calibration is None) == (1, False)
    assert manifest.agreement["accuracy"] == manifest.agreement["accuracy_fp32"]
    assert "--calibrate applies it to the scores" in capsys.readouterr().out
