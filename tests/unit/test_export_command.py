"""export/__main__.py: what a person types, and what it says."""

import pytest

from app.bundle import load_bundle
from export.__main__ import main
from model.checkpoints.describe import parameters
from model.checkpoints.families.native import save
from tests.toy import toy_checkpoint


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "toy.safetensors"
    save(toy_checkpoint(), path)
    return path


def test_export_writes_a_bundle_and_says_how_exact_it_is(checkpoint, tmp_path, capsys):
    out = tmp_path / "bundles" / "toy"
    options = ["--image-size", "32x48", "--set", "name=mine", "--precision", "fp16"]
    main(["--checkpoint", str(checkpoint), "--out", str(out), *options])
    manifest = load_bundle(out).manifest
    assert (manifest.name, manifest.image.size, manifest.tokens.grid) == ("mine", (32, 48), (4, 6))
    assert manifest.precision == "fp16"
    assert manifest.overrides == {"name": "mine", "image_size": "32,48"}
    said = capsys.readouterr().out
    assert "Largest difference to PyTorch" in said
    assert "fp16 gives the label of fp32 on 100.0% of 96 pictures." in said


def test_inspect_says_what_a_file_is_without_reading_weights(checkpoint, capsys, monkeypatch):
    monkeypatch.setattr("model.checkpoints.source.Source.take", lambda *_: pytest.fail("read a tensor"))
    main(["inspect", str(checkpoint), "--set", "name=mine"])
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "vit-serve" in lines["family"]
    assert lines["name"].endswith("set by hand")
    assert "(24, 40)" in lines["image_size"]
    assert "0.03 M" in lines["parameters"]
    assert "bilinear" in lines["preprocessing.interpolation"]


def test_parameters_are_counted_as_torch_does():
    model = toy_checkpoint().model
    assert parameters(model.config) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--checkpoint", "nowhere.npz"], "nowhere.npz is not a file"),
        (["--checkpoint", "{}", "--set", "colour=red"], "--set colour: this kind of checkpoint has image_size, name"),
        (["--checkpoint", "{}", "--image-size", "33"], "not a multiple of patch_size"),
    ],
)
def test_refusals_are_one_clear_line_and_leave_nothing(checkpoint, tmp_path, arguments, said):
    out = tmp_path / "out"
    with pytest.raises(SystemExit, match="not exported") as refusal:
        main([argument.format(checkpoint) for argument in arguments] + ["--out", str(out)])
    assert said in str(refusal.value)
    assert not out.exists()


@pytest.mark.parametrize("size", ["0", "1x2x3", "big"])
def test_a_size_that_is_none_is_refused(checkpoint, size, capsys):
    with pytest.raises(SystemExit):
        main(["--checkpoint", str(checkpoint), "--out", "x", "--image-size", size])
    assert "--image-size" in capsys.readouterr().err
