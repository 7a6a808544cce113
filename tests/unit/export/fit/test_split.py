"""export/fit/split.py: a stratified tenth, copies on one side, and images that contradict themselves."""

import os
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from export.fit.labelled import Labelled, LeftOut, Listing
from export.fit.split import choose, split


def files(folder, contents, label="cat"):
    """An image for each content."""
    out = []
    for number, content in enumerate(contents):
        path = folder / f"{label}-{number}.jpg"
        path.write_bytes(content)
        out.append(Labelled(path, label))
    return tuple(out)


def named(images):
    return sorted(image.file.name for image in images)


def chosen(images, seed=0, groups=None):
    """The division of images of which none is broken: to learn from, and held out."""
    unique = split(Listing(train=tuple(images), held_out=None)).train
    held_out = choose(unique, groups or range(len(unique)), seed=seed)
    return [[image for image in unique if (image.digest in held_out) == side] for side in (False, True)]


def test_a_tenth_of_each_label_is_held_out(tmp_path):
    counts = {"a": 100, "b": 34, "c": 5, "d": 2, "e": 1}
    contents = {label: [label.encode() + b"%d" % n for n in range(count)] for label, count in counts.items()}
    images = [image for label in counts for image in files(tmp_path, contents[label], label)]
    train, held_out = chosen(images)
    assert Counter(image.label for image in held_out) == {"a": 10, "b": 3, "c": 1, "d": 1}
    assert sorted(named(train) + named(held_out)) == named(images)


def test_the_held_out_images_depend_on_bytes_and_seed_alone(tmp_path):
    images = files(tmp_path, [b"%d" % n for n in range(50)])
    held_out = {image.file.read_bytes() for image in chosen(images)[1]}
    assert held_out == {b"14", b"16", b"26", b"30", b"7"}  # of every release, so that reports can be compared
    (tmp_path / "other").mkdir()
    renamed = files(tmp_path / "other", [b"%d" % n for n in reversed(range(50))])
    more = files(tmp_path, [b"another %d" % n for n in range(9)], "dog")
    again = chosen(renamed + more)[1]
    assert {image.file.read_bytes() for image in again if image.label == "cat"} == held_out
    assert {image.file.read_bytes() for image in chosen(images, seed=1)[1]} != held_out


def test_a_group_is_on_one_side(tmp_path):
    images = [
        image for label in "ab" for image in files(tmp_path, [b"%s %d" % (label.encode(), n) for n in range(30)], label)
    ]
    groups = [number // 3 for number in range(60)]
    train, held_out = chosen(images, groups=groups)
    of_side = [{groups[images.index(Labelled(*image[:2]))] for image in side} for side in (train, held_out)]
    assert [len(side) for side in of_side] == [18, 2]
    assert not of_side[0] & of_side[1]
    assert chosen(images[:3], groups=[0, 0, 0])[1] == []  # something has to be learned from
    assert len(chosen(images[:9], groups=[0] * 6 + [1] * 3)[1]) == 3


def test_a_held_out_image_is_not_learned_from(tmp_path):
    train = files(tmp_path, [b"1", b"2", b"3"])
    held_out = tuple(Labelled(image.file, "cat") for image in files(tmp_path, [b"2", b"4"], "dog"))
    found = split(Listing(train=train, held_out=held_out))
    assert (named(found.train), named(found.held_out)) == (["cat-0.jpg", "cat-2.jpg"], ["dog-0.jpg", "dog-1.jpg"])
    assert (found.copies, found.across) == ((train[1].file,), 1)


def test_an_image_with_two_labels_is_left_out(tmp_path):
    images = files(tmp_path, [b"1", b"2", b"3"]) + files(tmp_path, [b"1", b"4"], "dog")
    found = split(Listing(train=images, held_out=None))
    assert named(found.train) == ["cat-1.jpg", "cat-2.jpg", "dog-1.jpg"]
    assert named(found.left_out) == ["cat-0.jpg", "dog-0.jpg"]
    assert {left.reason for left in found.left_out} == {"the same file has the labels cat and dog"}


def test_a_file_that_cannot_be_read_is_left_out(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    reasons = {"gone.jpg": "No such file or directory", "pipe.jpg": "it is a FIFO, not a file"}
    images = (*files(tmp_path, [b"1", b"2"]), *(Labelled(tmp_path / name, "cat") for name in reasons))
    before = LeftOut(tmp_path / "b", "Permission denied")
    found = split(Listing(train=images, held_out=None, left_out=(before,)))
    assert found.left_out == (before, *(LeftOut(tmp_path / name, reason) for name, reason in reasons.items()))


@given(
    contents=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30)), min_size=1, max_size=60),
    given_share=st.integers(0, 3),
    seed=st.integers(0, 9),
)
@settings(deadline=None)
def test_every_file_is_accounted_for_and_no_image_is_on_both_sides(tmp_path_factory, contents, given_share, seed):
    folder = tmp_path_factory.mktemp("images")
    images = [Labelled(folder / f"{number}.jpg", label) for number, (label, _) in enumerate(contents)]
    for image, (_, content) in zip(images, contents, strict=True):
        image.file.write_bytes(b"%d" % content)
    held_out = images[: len(images) * given_share // 4]
    found = split(Listing(train=tuple(images[len(held_out) :]), held_out=tuple(held_out) or None))
    used = [image.file for image in (*found.train, *(found.held_out or ()))]
    others = [*found.copies, *(left.file for left in found.left_out)]
    assert sorted(used + others) == sorted(image.file for image in images)
    assert len({file.read_bytes() for file in used}) == len(used)
    if not held_out:
        alone = range(len(found.train))
        learned = {image.label for image in found.train if image.digest not in choose(found.train, alone, seed=seed)}
        assert learned == {image.label for image in found.train}
