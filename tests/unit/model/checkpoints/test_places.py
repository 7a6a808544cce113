"""model/checkpoints/places.py: what may be meant by a path that does not exist or has no weights."""

import json
from pathlib import Path

import pytest

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.places import DEEPEST, missing


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("google/vit-base-patch16-224", r"does not exist\. If .* is meant, give hf://google/vit-base-patch16-224$"),
        ("timm/vit_tiny_patch16_224.augreg_in21k@v1", r"give hf://timm/vit_tiny_patch16_224\.augreg_in21k@v1$"),
        (
            "https://huggingface.co/google/vit-base-patch16-224",
            "not a path: the repository .* is hf://google/vit-base-patch",
        ),
        ("huggingface.co/org/name/tree/main", "is hf://org/name$"),
        ("https://hf.co/org/name/blob/v2/model.safetensors", "is hf://org/name@v2$"),
        ("https://huggingface.co/org/name/resolve/main/model.safetensors?download=true", "is hf://org/name$"),
        ("hf-hub:timm/vit_tiny_patch16_224", "is hf://timm/vit_tiny_patch16_224$"),
        ("hf:/org/name", "is hf://org/name$"),
        ("https://example.org/vit.pth", "^https://example.org/vit.pth is not a path: download it"),
        ("s3://bucket/vit.pth", "^s3://bucket/vit.pth is not a path: download it"),
        ("runs/model.pth", r"^runs/model\.pth does not exist$"),
        ("model/vit-base", "^model/vit-base does not exist$"),  # there is a folder model/
        ("a/b/c", "^a/b/c does not exist$"),
        ("/org/name", "^/org/name does not exist$"),
        ("nowhere.npz", r"^nowhere\.npz does not exist$"),
    ],
)
def test_what_a_path_that_does_not_exist_may_mean(path, message):
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(path)


def test_a_path_keeps_the_slashes_of_an_address():
    assert missing(Path("https://example.org/vit.pth")).startswith("https://example.org/vit.pth is not a path")


def run(folder, *files):
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(b"")
    return folder


STATE = "checkpoint-1000/trainer_state.json"


@pytest.mark.parametrize(
    ("files", "best", "order"),
    [
        (["checkpoint-500/model.safetensors", "checkpoint-1000/model.safetensors"], None, ["1000", "500"]),
        (["checkpoint-500/pytorch_model.bin", "checkpoint-1000/pytorch_model.bin", STATE], "500", ["500", "1000"]),
        (["lightning_logs/version_0/checkpoints/epoch=9.ckpt"], None, ["version_0/checkpoints"]),
        (["snapshots/abc/model.safetensors", "refs/main"], None, ["snapshots/abc"]),  # of the cache of the Hub
    ],
)
def test_a_folder_of_checkpoints_names_those(tmp_path, files, best, order):
    run(tmp_path, *files)
    if best:
        (tmp_path / STATE).write_text(json.dumps({"best_model_checkpoint": f"/elsewhere/out/checkpoint-{best}"}))
        earlier = {"best_model_checkpoint": "/elsewhere/out/checkpoint-1000"}
        (tmp_path / "checkpoint-500/trainer_state.json").write_text(json.dumps(earlier))
    with pytest.raises(CheckpointError, match="has no weights of its own: give a folder below it, such as ") as refusal:
        load_checkpoint(tmp_path)
    places = str(refusal.value).partition("such as ")[2].split(", ")
    assert len([place for place in places if str(tmp_path) in place]) == len(order)
    assert [part in str(refusal.value) for part in order]
    first = places[0]
    assert order[0] in first
    assert ("the best" in first) == bool(best)


def test_the_search_below_a_folder_is_bounded_and_follows_no_links(tmp_path):
    run(tmp_path, "/".join([*"abcdefgh"[: DEEPEST + 1], "model.safetensors"]))
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    with pytest.raises(CheckpointError, match="has no weights, such as"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"best_model_checkpoint": null}'])
def test_a_trainer_may_not_say_which_is_best(tmp_path, content):
    run(tmp_path, "checkpoint-5/model.safetensors")
    (tmp_path / "checkpoint-5/trainer_state.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"such as [^ ]*checkpoint-5$"):
        load_checkpoint(tmp_path)
