"""model/checkpoints: our own file format, loaded strictly."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.families.native import save
from model.checkpoints.load import describe_checkpoint
from model.checkpoints.tensors import RELATIVE
from tests.support.disk import room_for
from tests.support.familiar import knowing
from tests.support.toy import toy_checkpoint


def test_saved_values_come_back(tmp_path):
    learned = {"recipe": {"method": "probe", "rates": [0.1, 0.3]}, "history": ({"step": 1, "accuracy": None},)}
    saved = replace(toy_checkpoint(representation_size=11), figures={"top1_accuracy": 0.5}, **learned)
    save(saved, tmp_path / "toy.safetensors")
    loaded = load_checkpoint(tmp_path / "toy.safetensors")
    images = torch.randn(2, 3, 24, 40)
    with torch.inference_mode():
        assert (loaded.model(images) == saved.model(images)).all()
    assert not loaded.model.training
    assert loaded.advice == ""  # all of its metadata is used
    for field in ("labels", "preprocessing", "config", "figures", "recipe", "history"):
        assert getattr(loaded, field) == getattr(saved, field), field


def test_known_images_come_back_with_the_facts_that_change_their_features(tmp_path):
    path, saved = tmp_path / "toy.safetensors", knowing(toy_checkpoint(depth=1))
    save(saved, path)
    for overrides in (None, {"num_classes": "0"}):
        loaded = load_checkpoint(path, overrides=overrides).known
        for name in ("held_out", "labels", "offsets"):
            assert getattr(loaded, name).equal(getattr(saved.known, name))
        features = torch.randn(3, len(saved.known.unlike.mean))
        assert loaded.unlike(features).equal(saved.known.unlike(features))
        assert (loaded.pictures, loaded.changed_by) == (saved.known.pictures, ())
    assert describe_checkpoint(path).problems == ()  # none of what is known is an unused tensor
    assert load_checkpoint(path, overrides={"image_size": "40,40"}).known.changed_by == ("image_size",)
    save(toy_checkpoint(depth=1), path)
    assert load_checkpoint(path).known is None


def test_a_disk_that_is_full_leaves_the_file_that_was_there(tmp_path):
    path = tmp_path / "toy.safetensors"
    path.write_text("before")
    with room_for(50_000), pytest.raises(OSError, match="File too large"):
        save(toy_checkpoint(), path)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["before"]


def test_a_header_of_any_length_is_safetensors(tmp_path):
    """Its length comes first in the file, and for one file of 32 it begins with the byte of pickles."""
    path, beginnings = tmp_path / "toy.safetensors", set()
    for letters in range(0, 256, 8):
        save(replace(toy_checkpoint(depth=1), name="a" * letters), path)
        beginnings.add(path.read_bytes()[:1])
        assert load_checkpoint(path).name == "a" * letters
    assert b"\x80" in beginnings


UNKNOWN_IMAGES, BIASES = "what it knows of its images is not that of this version", f"blocks.0.attn.{RELATIVE}"


@pytest.mark.parametrize(
    ("tensors", "stated", "message"),
    [
        ({"surplus": torch.zeros(1)}, {}, "unused: surplus"),
        ({"blocks.0.attn.qkv.bias": None}, {}, r"missing: blocks\.0\.attn\.qkv\.bias"),
        ({"head.bias": torch.zeros(3)}, {}, r"head\.bias is \(3,\), not \(7,\)"),
        ({"cls_token": torch.tensor(1.0)}, {}, "a token or a table of positions is a single number"),
        ({"pos_embed": torch.zeros(1, 16, 16)}, {}, r"\(1, 16, 16\) does not fit a grid of \(3, 5\)"),
        ({BIASES: torch.zeros(9, 2)}, {}, "9 biases does not fit 5 by 9 offsets"),
        ({"known.unlike.directions": torch.zeros(3)}, {}, UNKNOWN_IMAGES),
        ({"known.more": torch.zeros(3)}, {}, UNKNOWN_IMAGES),
        ({}, {"temperature": 2.0}, "the metadata has temperature, which this version does not know"),
        ({}, {"config": {"width": 8, "swish": True}}, "the metadata is not that of this version: .*swish"),
        ({}, {"labels": None}, "the metadata is not that of this version"),
    ],
)
def test_tensors_and_metadata_that_are_not_used_as_they_are_have_the_file_refused(tmp_path, tensors, stated, message):
    path = tmp_path / "toy.safetensors"
    save(knowing(toy_checkpoint(depth=1)), path)
    with safe_open(path, "pt") as file:
        metadata = json.loads(file.metadata()["vit-serve"]) | stated
    changed = {name: tensor for name, tensor in (load_file(path) | tensors).items() if tensor is not None}
    save_file(changed, path, metadata={"vit-serve": json.dumps(metadata)})
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(path)


@pytest.mark.parametrize("content", [None, b"\x0fnot a checkpoint", b"\x01" * 100])
def test_a_file_that_is_missing_or_of_another_kind_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match="does not exist" if content is None else r"x\.safetensors is neither"):
        load_checkpoint(tmp_path / "x.safetensors")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["blocks.0.attn.q.weight", "rope.freqs", "head.weight"], r"most like timm, .*not have rope\.freqs"),
        (["encoder.layer.0.mixer.weight", "embeddings.cls"], "most like Hugging Face .*encoder.layer.0.mixer"),
        (["conv1.weight", "layer1.0.conv1.weight", "transformer.resblocks.0.x"], "most like OpenAI's CLIP, .*layer1"),
        (["foo", "bar"], "resembles no known family; its first tensors are bar, foo"),
    ],
)
def test_the_error_for_an_unknown_network_names_the_nearest_family(tmp_path, names, message):
    save_file({name: torch.zeros(1) for name in names}, tmp_path / "x.safetensors")
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path / "x.safetensors")
