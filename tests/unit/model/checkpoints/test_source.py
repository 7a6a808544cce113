"""model/checkpoints/source.py: files of every kind, told apart by content."""

import argparse
import json
import os
import re

import numpy as np
import pytest
import torch
from safetensors.torch import save_file, save_model
from torch import nn

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.files import LARGEST_JSON, read_json
from model.checkpoints.source import Source

TENSORS = {"a.weight": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1, 2])}


def check(source: Source) -> None:
    assert set(source.names) == set(TENSORS)
    assert source.shape("a.weight") == (2, 3)
    for name, tensor in source.tensors().items():
        assert torch.equal(tensor, TENSORS[name])


@pytest.mark.parametrize("legacy", [False, True])
def test_pytorch_files(tmp_path, legacy):
    content = {"state_dict": TENSORS, "args": argparse.Namespace(lr=0.1), "epoch": 3}
    torch.save(content, tmp_path / "x.weights", _use_new_zipfile_serialization=not legacy)
    check(Source(tmp_path / "x.weights"))


def test_a_folder_without_weights_is_refused(tmp_path):
    torch.save({"epoch": 3}, tmp_path / "x.pth")
    with pytest.raises(CheckpointError, match="no state dict; it has epoch"):
        Source(tmp_path)
    (tmp_path / "x.pth").rename(tmp_path / "manifest.json")
    with pytest.raises(CheckpointError, match="is a bundle, so it is exported already: vit-serve serve --bundle "):
        Source(tmp_path)


@pytest.mark.parametrize("kind", ["safetensors", "zip", "legacy"])
@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.999])
def test_a_file_that_was_cut_off_is_called_so(tmp_path, kind, share):
    path, tensors = tmp_path / "x.weights", {"a": torch.zeros(9000), "b": torch.ones(900)}
    if kind == "safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path, _use_new_zipfile_serialization=kind == "zip")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(CheckpointError, match=r"x.weights is cut off after [\d,]+ bytes"):
        Source(path)


@pytest.mark.parametrize(
    ("part", "behind", "said"),
    [
        (b"\x93NUMPY", 20_000, "^a in x.npz cannot be read: .*again$"),  # the numbers of an array
        (b"\x93NUMPY", 0, "^x.npz cannot be read: .*again$"),
        (b"PK\x01\x02", 0, "^x.npz (cannot be read: |is cut off ).*again$"),  # the list of all arrays
    ],
)
def test_an_npz_that_was_damaged_is_called_so(tmp_path, part, behind, said):
    np.savez(tmp_path / "x.npz", a=np.zeros(9000, np.float32))
    content = bytearray((tmp_path / "x.npz").read_bytes())
    content[content.index(part) + behind] ^= 1
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(CheckpointError, match=said):
        Source(tmp_path / "x.npz").tensors()


def test_no_tensor_hides_another_when_prefixes_are_dropped(tmp_path):
    names = ("model.patch_embed.proj.weight", "model.head.weight", "head.weight")
    save_file({name: torch.zeros(3) for name in names}, tmp_path / "x.safetensors")
    with pytest.raises(CheckpointError, match=r"both model\.head\.weight and head\.weight"):
        Source(tmp_path / "x.safetensors")


@pytest.mark.parametrize("file", ["x.pth.tar", "best_model.bin"])
def test_a_lone_file_of_any_suffix_in_a_folder(tmp_path, file):
    (tmp_path / "run").mkdir()
    torch.save({"arch": "vit_tiny_patch16_224", "state_dict": TENSORS}, tmp_path / "run" / file)
    for beside in ("args.yaml", "training_args.bin", "optimizer.pt", "rng_state.pth", "scheduler.bin"):
        (tmp_path / "run" / beside).write_text("lr: 1")
    source = Source(tmp_path / "run")
    assert (source.name, source.architectures) == ("run", ["vit_tiny_patch16_224"])
    assert Source(tmp_path / "run" / file).name == file.partition(".")[0]
    check(source)


def test_names_change_one_after_the_other_and_no_tensor_hides_another(tmp_path):
    save_file(TENSORS, tmp_path / "x.safetensors")
    source = Source(tmp_path / "x.safetensors")
    with pytest.raises(CheckpointError, match=r"^x\.safetensors has b and another tensor that is a\.weight too$"):
        source.rename([("^b$", "a.weight")])
    source.rename([(r"^a\.", "b."), (r"^b\.(\w)", r"c.\1")], dropping="b")
    assert {name: tensor.shape for name, tensor in source.tensors().items()} == {"c.weight": (2, 3)}
    with pytest.raises(CheckpointError, match=r"^x\.safetensors has no a\.weight$"):
        source.shape("a.weight")


KINDS = ("weight", "bias")


def tied_blocks() -> nn.ModuleDict:
    """Blocks 2 and 3 are blocks 0 and 1."""
    own = [nn.Linear(2, 2), nn.Linear(2, 2)]
    return nn.ModuleDict({"blocks": nn.ModuleList([*own, *own]), "norm": nn.LayerNorm(2)})


def check_tied(source: Source) -> None:
    read, state = source.tensors(), tied_blocks().state_dict()
    assert read.keys() == state.keys()
    assert source.count(r"blocks\.(\d+)\.") == 4
    assert all(
        torch.equal(read[f"blocks.{i}.{kind}"], read[f"blocks.{i + 2}.{kind}"]) for i in (0, 1) for kind in KINDS
    )


@pytest.mark.parametrize("metadata", [None, {"format": "pt", "blocks.0.weight": "gone", "note": "blocks"}])
def test_tensors_that_safetensors_leaves_out_because_they_are_shared(tmp_path, metadata):
    save_model(tied_blocks(), str(tmp_path / "x.safetensors"), metadata=metadata)
    check_tied(Source(tmp_path / "x.safetensors"))


def test_shared_tensors_of_shards_are_named_in_their_list(tmp_path):
    """As save_torch_state_dict of huggingface_hub writes it."""
    kept = {name: tensor for name, tensor in tied_blocks().state_dict().items() if name[7] not in "23"}
    shared = {f"blocks.{i + 2}.{kind}": f"blocks.{i}.{kind}" for i in (0, 1) for kind in KINDS}
    for i, name in enumerate(kept):
        save_file({name: kept[name]}, tmp_path / f"model-{i}.safetensors", metadata={"format": "pt"})
    listing = {"weight_map": {name: f"model-{i}.safetensors" for i, name in enumerate(kept)}}
    listing["metadata"] = {"total_size": 48, **shared}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(listing))
    check_tied(Source(tmp_path))


def listed(folder, shard):
    """A folder with one tensor in a shard that its index names."""
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a.weight": str(shard)}}))
    return folder


def test_shards_lie_in_folders_and_may_be_links(tmp_path):
    blob = tmp_path / "blobs" / "0a1b"
    folder = tmp_path / "snapshots"
    for place in (blob.parent, folder / "sub"):
        place.mkdir(parents=True)
    save_file(TENSORS, blob)
    (folder / "sub" / "a.safetensors").symlink_to(blob)
    check(Source(listed(folder, "sub/a.safetensors")))


@pytest.mark.parametrize("shard", ["1.safetensors", "2.safetensors"])
def test_a_tensor_that_two_shards_have_is_the_listed_one(tmp_path, shard):
    """The other is of before a part of the weights was written again (vllm #54230, colibri #1479)."""
    listing = {"a.weight": shard}
    for file in ("1.safetensors", "2.safetensors"):
        listing[f"{file}.bias"] = file
        save_file({"a.weight": torch.tensor(file == shard), f"{file}.bias": torch.ones(1)}, tmp_path / file)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": listing}))
    assert Source(tmp_path).read("a.weight").item()


@pytest.mark.parametrize("shard", ["../outside/a.safetensors", "sub/../../outside/a.safetensors", "link/a.safetensors"])
def test_a_shard_outside_the_folder_is_not_read(tmp_path, shard):
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    (folder / "sub").mkdir(parents=True)
    outside.mkdir()
    (folder / "link").symlink_to(outside)
    save_file(TENSORS, outside / "a.safetensors")
    for name in (shard, outside / "a.safetensors"):
        with pytest.raises(CheckpointError, match=r"lists '.*/a\.safetensors', which is outside its folder"):
            Source(listed(folder, name))


@pytest.mark.parametrize("shard", ["gone", "a\0b", "loop/x", "x" * 300, "\x1b]0;x\n"])
def test_a_shard_that_no_file_can_be_is_refused_and_quoted(tmp_path, shard):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(CheckpointError, match=re.escape(f"lists {shard!r}, which is not in its folder")):
        Source(listed(tmp_path, shard))


@pytest.mark.timeout(60)
def test_what_would_never_end_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"lists 'model\.safetensors\.index\.json', which is no file"):
        Source(listed(tmp_path, "model.safetensors.index.json"))
    for fifo in ("x.pth", "trainer_state.json"):
        os.mkfifo(tmp_path / fifo)
    with pytest.raises(CheckpointError, match=r"x\.pth is neither a file nor a folder"):
        Source(tmp_path / "x.pth")
    (tmp_path / "model.safetensors.index.json").unlink()
    (tmp_path / "checkpoint-5").mkdir()
    (tmp_path / "checkpoint-5" / "model.safetensors").touch()
    with pytest.raises(CheckpointError, match=r"give a folder below it, such as .*checkpoint-5$"):
        Source(tmp_path)


@pytest.mark.parametrize("listing", [{}, {"weight_map": []}, {"weight_map": {"a.weight": 1}}])
def test_an_index_without_a_list_of_shards_is_refused(tmp_path, listing):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(listing))
    with pytest.raises(CheckpointError, match="has no weight_map"):
        Source(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "too many brackets"),
        (" " * (LARGEST_JSON + 1), "more than 67,108,864 bytes"),
        ("[]", "not a JSON"),
    ],
)
def test_json_that_is_deep_or_huge_is_refused(tmp_path, text, message):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=f"^config.json .*{message}"):
        read_json(tmp_path / "config.json")
