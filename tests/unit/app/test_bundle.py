"""app/bundle.py: a bundle is taken whole and unaltered, or not at all."""

import json
import shutil
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from app.bundle import BundleError, load_bundle
from app.images.preprocess import ImageSpec, Resize


@pytest.fixture
def bundle(tmp_path) -> Path:
    return Path(shutil.copytree("app/demo", tmp_path / "bundle"))


def edit(bundle: Path, **changes) -> None:
    path = bundle / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_the_demo_bundle_is_whole():
    bundle = load_bundle(Path("app/demo"))
    bundle.check_files()
    assert bundle.manifest.tokens.count == 65
    assert len(bundle.digest) == 64


def test_the_digest_follows_the_manifest(bundle):
    before = load_bundle(bundle).digest
    edit(bundle, name="another")
    assert load_bundle(bundle).digest != before


@pytest.mark.parametrize("name", ["weights.bin", "explain.onnx"])
def test_one_changed_byte_and_a_missing_file_are_refused(bundle, name):
    data = bytearray((bundle / name).read_bytes())
    data[len(data) // 2] ^= 1
    (bundle / name).write_bytes(data)
    with pytest.raises(BundleError, match=f"{name} does not have the checksum"):
        load_bundle(bundle).check_files()
    (bundle / name).unlink()
    with pytest.raises(BundleError, match=f"lacks {name}"):
        load_bundle(bundle).check_files()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nowhere", r"nowhere does not exist \((VIT_)?BUNDLE\)$"),
        ("app/api", r"app/api is not a bundle: it has no manifest\.json\."),
        ("model/demo", r"a checkpoint, not a bundle\. .*: make export CHECKPOINT=model/demo OUT=bundles/demo$"),
        ("model/demo/shapes.safetensors", r"CHECKPOINT=model/demo/shapes\.safetensors OUT=bundles/shapes$"),
    ],
)
def test_what_is_no_bundle_is_refused_with_what_to_do(path, said):
    with pytest.raises(BundleError, match=said):
        load_bundle(Path(path))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": 3}, "format"),
        ({"surprise": 1}, "surprise"),
        ({"labels": []}, "one logit for each label"),
        ({"files": {}}, "files"),
        ({"pool": "nothing"}, "pool"),
        ({"inspect": {"filters": "Filters", "fig7": "Another"}}, r"lacks .*inspect/fig7\.json, inspect/fig7\.png"),
    ],
)
def test_a_manifest_that_is_not_understood_is_refused_by_field(bundle, changes, said):
    edit(bundle, **changes)
    with pytest.raises(BundleError, match=said):
        load_bundle(bundle)


@pytest.mark.parametrize("manifest", ['{"format": 1}', '{"format": 2}', "{", "[]"])
def test_an_older_or_a_broken_manifest_is_refused_with_what_to_do(tmp_path, manifest):
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(BundleError, match=r"Export it again|is not a manifest of format 2") as refused:
        load_bundle(tmp_path)
    assert ("format" in manifest) == ("an older version" in str(refused.value))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"logits": [1.0]}, "one logit for each label"),
        ({"pixels": "AAAA"}, "pixels are not those"),
        ({"sums": {}}, "outputs of the explaining graph"),
        ({"tolerance": {}}, "tolerance.logits"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_known_answer_that_does_not_fit_is_refused(bundle, changes, said):
    answer = json.loads((bundle / "manifest.json").read_text())["known_answer"]
    edit(bundle, known_answer=answer | changes)
    with pytest.raises(BundleError, match=said):
        load_bundle(bundle)


def test_a_file_outside_the_folder_is_refused(bundle):
    files = json.loads((bundle / "manifest.json").read_text())["files"]
    edit(bundle, files=files | {"../../../etc/hostname": "0" * 64})
    with pytest.raises(BundleError, match="lacks"):
        load_bundle(bundle).check_files()


AS_IN_A_MANIFEST = TypeAdapter(ImageSpec)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"size": (64, 64), "resize": Resize(mode="shortest", size=(60, 80))}, "crop is larger"),
        ({"size": (60, 60), "remainder": (4, 4), "resize": Resize(mode="shortest", size=(60, 80))}, "crop is larger"),
        ({"size": (56, 56), "resize": Resize(mode="squash", size=(60, 60)), "crop": "none"}, "without a crop"),
        ({"size": (56, 56), "remainder": (-4, 4)}, "remainder"),
    ],
)
def test_a_crop_that_does_not_fit_the_resize_is_refused(fields, complaint):
    fitting = {"resize": Resize(mode="squash", size=(60, 60)), "crop": "center", "interpolation": "bicubic"}
    with pytest.raises(ValueError, match=complaint):
        AS_IN_A_MANIFEST.validate_python({**fitting, "mean": (0, 0, 0), "std": (1, 1, 1), **fields})


def test_the_remainder_counts_where_there_is_no_crop():
    squashed = Resize(mode="squash", size=(60, 60))
    fields = {"resize": squashed, "crop": "none", "interpolation": "bicubic", "mean": (0, 0, 0), "std": (1, 1, 1)}
    assert ImageSpec(size=(56, 56), remainder=(4, 4), **fields).remainder == (4, 4)
