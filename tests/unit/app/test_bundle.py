"""app/bundle.py: a bundle is taken whole and unaltered, or not at all."""

import hashlib
import json
import os
import re
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from app.bundle import UPGRADING, BundleError, load_bundle, sha256
from app.settings import DEMO_BUNDLE
from tests.support.edited import edit


@pytest.fixture
def bundle(tmp_path) -> Path:
    return Path(shutil.copytree(DEMO_BUNDLE, tmp_path / "bundle"))


def written_without_a_trace(weights: Path) -> None:
    before = weights.stat()
    weights.write_bytes(bytes(before.st_size))
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_the_demo_bundle_is_whole_and_its_digest_is_that_of_its_manifest():
    bundle = load_bundle(DEMO_BUNDLE)
    bundle.check_files()
    assert bundle.digest == hashlib.sha256((DEMO_BUNDLE / "manifest.json").read_bytes()).hexdigest()


def test_a_bundle_of_before_tokens_still_loads(bundle):
    manifest = json.loads((bundle / "manifest.json").read_text())
    del manifest["arrays"], manifest["files"]["tokens.onnx"], manifest["known_answer"]["sums"]["tokens"]
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    found = load_bundle(bundle)
    found.check_files()
    assert found.manifest.graphs.keys() == {"classify", "explain"}


def test_a_manifest_may_begin_with_a_byte_order_mark(bundle):
    manifest, path = load_bundle(bundle).manifest, bundle / "manifest.json"
    path.write_text(path.read_text(), "utf-8-sig")
    assert load_bundle(bundle).manifest == manifest


def test_a_changed_byte_an_empty_file_and_a_missing_one_are_refused(bundle):
    weights = bundle / "weights.bin"
    data = bytearray(weights.read_bytes())
    data[len(data) // 2] ^= 1
    for altered in (data, b""):
        weights.write_bytes(altered)
        with pytest.raises(BundleError, match=r"weights\.bin does not have the checksum"):
            load_bundle(bundle).check_files()
    weights.unlink()
    with pytest.raises(BundleError, match=r"lacks 'weights\.bin'"):
        load_bundle(bundle).check_files()


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (lambda weights: weights.write_bytes(b""), True),
        (lambda weights: weights.write_bytes(bytes(weights.stat().st_size)), True),
        (written_without_a_trace, True),
        (lambda weights: weights.with_name("link").hardlink_to(weights), False),
        (lambda weights: weights.unlink(), False),
        (lambda weights: Path(shutil.copy(weights, f"{weights}.new")).replace(weights), False),
    ],
)
def test_weights_that_are_written_to_have_changed_and_a_file_in_their_place_has_not(bundle, change, changed):
    weights, loaded = bundle / "weights.bin", load_bundle(bundle)
    loaded.check_files()
    assert not loaded.weights_changed()
    change(weights)
    assert loaded.weights_changed() == changed


def test_the_weights_of_a_text_tower_are_watched_too(bundle):
    weights, loaded = bundle / "text.bin", load_bundle(bundle)
    weights.write_bytes(b"1")
    loaded.manifest.files["text.bin"] = sha256(weights)
    loaded.check_files()
    weights.write_bytes(b"2")
    assert loaded.weights_changed()


@pytest.mark.parametrize("name", ["../outside", "a\0b", "loop/x", "x" * 300, "\x1b]0;x\n"])
def test_a_name_of_no_file_in_the_folder_is_refused_and_quoted(bundle, name):
    (bundle.parent / "outside").touch()
    (bundle / "loop").symlink_to("loop")
    edit(bundle, files={name: hashlib.sha256(b"").hexdigest()})
    with pytest.raises(BundleError, match=re.escape(f"lacks {name!r}, which")):
        load_bundle(bundle).check_files()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nowhere", r"nowhere does not exist \((VIT_)?BUNDLE\)$"),
        ("app/api", r"app/api is not a bundle: it has no manifest\.json\."),
        (
            "model/demo",
            r"a checkpoint, not a bundle\. .*: vit-serve export --checkpoint model/demo --out bundles/demo$",
        ),
        ("model/demo/shapes.safetensors", r"--checkpoint model/demo/shapes\.safetensors --out bundles/shapes$"),
    ],
)
def test_what_is_no_bundle_is_refused_with_what_to_do(path, said):
    with pytest.raises(BundleError, match=said):
        load_bundle(Path(path))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": 1}, "format: "),
        ({"surprise": 1}, "surprise"),
        ({"\x1b]0;": 1}, r"\\x1b\]0;: "),
        ({"layers": 10**9}, "layers: "),
        ({"layers": 5}, "layers, heads and tokens are not those of attention"),
        ({"features": 5}, "features are not those of embedding"),
        ({"tokens": {"patch": 16}}, "tokens do not cover an image of this size"),
        ({"inspect": {"fig7": "Another"}}, r"lacks inspect/fig7\.json, inspect/fig7\.png"),
        ({"held_out": None}, "familiarity, held_out and unlike in explains are not those of one another"),
        ({"held_out": {"unlike": [1.0, 0.5]}}, "unlike is not in rising order"),
        ({"known_answer": {"logits": [1.0]}}, "one logit for each label"),
        ({"known_answer": {"pixels": "AAAA"}}, "pixels are not those"),
        ({"known_answer": {"sums": {}}}, "outputs of the graphs"),
        ({"arrays": {"tokens": [64, 128]}}, "arrays are not those of the tokens"),
        ({"image": {"resize": {"mode": "shortest", "size": [60, 80]}}}, "crop is larger"),
        ({"image": {"remainder": [1, 0]}}, "crop is larger"),
        ({"image": {"resize": {"mode": "squash", "size": [80, 80]}, "crop": "none"}}, "without a crop"),
    ],
)
def test_a_manifest_that_is_not_understood_is_refused_by_field(bundle, changes, said):
    edit(bundle, **changes)
    to_do = rf"Export the model again \({UPGRADING}\)\."
    with pytest.raises(BundleError, match=rf"is not a manifest of format 4 \(.*{said}.*\)\. {to_do}$"):
        load_bundle(bundle)
    assert Path(UPGRADING).is_file()


@pytest.mark.parametrize(("precision", "on_gpus"), [("fp32", True), ("fp16", True), ("bf16", False), ("int8", False)])
def test_only_a_precision_that_gpus_run_needs_their_graphs(bundle, precision, on_gpus):
    """Bundles of earlier versions have them in every precision."""
    edit(bundle, precision=precision)
    load_bundle(bundle).check_files()
    path = bundle / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["files"]["classify.onnx"], manifest["files"]["explain.onnx"]
    path.write_text(json.dumps(manifest))
    refused = pytest.raises(BundleError, match=r"lacks classify\.onnx, explain\.onnx")
    with refused if on_gpus else nullcontext():
        load_bundle(bundle).check_files()
