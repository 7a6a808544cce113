"""export/folder.py: images of every type, broken ones among them, in folders that are labels or are not."""

import dataclasses

import numpy as np
import pytest
from PIL import Image

from export import folder as reading
from export.folder import ENOUGH, read_folder
from tests.support.toy import toy_checkpoint

CHECKPOINT = toy_checkpoint()


def gray(level: int) -> Image.Image:
    return Image.new("RGB", (50, 40), (level, level, level))


def fill(folder, count, *, names=("",)):
    """`count` images in turn in the folders, with levels of gray 0, 1, ..."""
    for number in range(count):
        path = folder / names[number % len(names)] / f"{number:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        gray(number).save(path)


def read(folder) -> tuple[list[int], list[int], list[int] | None]:
    """Gray of the images for ranges and of those that are judged, and the labels of these."""
    images = read_folder(folder, CHECKPOINT)
    labels = None if images.labels is None else images.labels.tolist()
    return images.ranges[:, 0, 0, 0].tolist(), images.judged[:, 0, 0, 0].tolist(), labels


def test_images_are_split_and_each_is_used_once(tmp_path):
    fill(tmp_path, 40)
    ranges, judged, labels = read(tmp_path)
    assert (len(ranges), len(judged), labels) == (20, 20, None)
    assert sorted(ranges + judged) == list(range(40))
    assert ranges != sorted(ranges)
    assert read(tmp_path) == (ranges, judged, labels)
    assert read_folder(tmp_path, CHECKPOINT).seen == pytest.approx(0.625)


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (("b/deep", "E", "g"), (1, 4, 6)),  # the first folder counts
        (("n00000003",), (3,)),
        (("holiday", "work"), None),
    ],
)
def test_folders_are_labels_by_name_or_wordnet_id_or_are_only_folders_which_is_said(tmp_path, names, labels, capsys):
    fill(tmp_path, 42, names=names)
    wordnet = tuple(f"n0000000{i}" for i in range(7))
    images = read_folder(tmp_path, dataclasses.replace(CHECKPOINT, wordnet=wordnet))
    if labels:
        assert images.labels.tolist() == [labels[level % len(labels)] for level in images.judged[:, 0, 0, 0]]
    else:
        assert (images.labels, "no folder in" in images.unlabelled) == (None, True)
        assert f"The images have no labels, as {images.unlabelled}." in capsys.readouterr().err


def test_broken_files_are_named_and_skipped(tmp_path, capsys):
    fill(tmp_path, 40, names=("a", "b"))
    (tmp_path / "a" / "cut.jpg").write_bytes(b"\xff\xd8\xff\xe0 and no more")
    (tmp_path / "b" / "text.png").write_text("no image")
    (tmp_path / "b" / "gone.png").symlink_to("nowhere")
    (tmp_path / "b" / "notes.txt").write_text("not tried")
    (tmp_path / "b" / "._000.png").write_bytes(b"a Mac's, not tried")
    _, judged, labels = read(tmp_path)
    assert labels == [level % 2 for level in judged]
    lines = sorted(line for line in capsys.readouterr().err.splitlines() if "skipped" in line)
    starts = ("a/cut.jpg is skipped: ", "b/gone.png is skipped: No such file", "b/text.png is skipped: This is text")
    assert all(start in line for start, line in zip(starts, lines, strict=True))


@pytest.mark.parametrize(
    ("names", "judged", "others"),
    [
        (("train/a", "val/a", "val/b", "test/b"), "val", ", and not test, train"),
        (("Training/a", "test/a"), "test", ", and not Training"),
        (("train/a", "train/b"), "train", ""),
    ],
)
def test_of_a_data_set_in_parts_the_held_out_images_are_read(tmp_path, capsys, names, judged, others):
    fill(tmp_path, 4 * ENOUGH, names=names)
    levels = [level for level in range(4 * ENOUGH) if names[level % len(names)].startswith(judged)]
    ranges, found, labels = read(tmp_path)
    assert sorted(ranges + found) == levels
    assert labels == ["ab".index(names[level % len(names)][-1]) for level in found]
    assert f"--pictures {tmp_path}: {judged} is read{others}\n" in capsys.readouterr().err


def test_of_many_images_some_are_chosen_evenly(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MOST", 40)
    fill(tmp_path, 120)
    ranges, judged, _ = read(tmp_path)
    chosen = sorted(ranges + judged)
    assert len(chosen) == 40
    assert (chosen[0], chosen[-1]) == (0, 119)
    assert set(np.diff(chosen)) <= {3, 4}


def test_few_images_are_taken_with_a_warning(tmp_path, capsys):
    fill(tmp_path, 9)
    ranges, judged, _ = read(tmp_path)
    assert (len(ranges), sorted(ranges + judged)) == (4, list(range(9)))
    assert "Warning: 9 images are few: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "count", "message"),
    [
        (("",), 1, "it has 1 images that can be decoded, and 2 are needed"),
        (("a", ""), 60, "folders are labels, but 001.png is in none of them"),
        (("a",), 0, "this does not exist"),
    ],
)
def test_refusals(tmp_path, names, count, message):
    fill(tmp_path / "images", count, names=names)
    with pytest.raises(ValueError, match="a") as refusal:
        read(tmp_path / "images")
    assert message in str(refusal.value)
