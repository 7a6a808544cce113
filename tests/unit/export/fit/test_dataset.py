"""export/fit/dataset.py: pixels as the service prepares them, and files that cannot be decoded."""

import numpy as np
import pytest
import torch
from PIL import Image

from app.images.preprocess import preprocess
from export.fit.dataset import read_dataset
from export.fit.labelled import Labelled, Listing
from export.fit.split import split
from tests.support.specs import spec_of

SMALL = spec_of((24, 32), (28, 36))
LARGE = spec_of((28, 36), (32, 41))


def read(folder, train, held_out=None, *, learned=SMALL, judged=SMALL):
    images = split(Listing(train=tuple(train), held_out=held_out and tuple(held_out)))
    return read_dataset(images, seed=0, train=learned, held_out=judged, folder=folder, features=None)


def picture(folder, number, label, **options):
    path = folder / f"{number}.png"
    image = Image.fromarray(np.random.default_rng(number).integers(0, 256, (47, 60, 3), dtype=np.uint8))
    image.save(path, **options)
    return Labelled(path, label), image


def test_pixels_are_those_of_the_service_in_two_framings(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned
    pictures = [picture(tmp_path, n, "ab"[n % 2], exif=exif) for n in range(8)]
    images = [image for image, _ in pictures]
    dataset = read(tmp_path, images[:6], images[6:], learned=LARGE)
    upright = [image.transpose(Image.Transpose.ROTATE_270) for _, image in pictures]
    expected = [preprocess(image, LARGE if n < 6 else SMALL)[0] for n, image in enumerate(upright)]
    train, held_out = dataset.train.samples, dataset.held_out.samples
    np.testing.assert_array_equal(train.pixels.numpy(), expected[:6])
    np.testing.assert_array_equal(held_out.pixels.numpy(), expected[6:])
    assert (train.classes.tolist(), held_out.classes.tolist()) == ([0, 1] * 3, [0, 1])
    assert (dataset.labels, dataset.count(dataset.train)) == (("a", "b"), {"a": 3, "b": 3})
    assert dataset.train.files == tuple(image.file for image in images[:6])
    images[0].file.write_bytes(images[0].file.read_bytes() + b"x")  # which changes no pixel
    again = read(tmp_path, images[:6], images[6:], learned=LARGE)
    assert again.train.samples.digest != train.digest
    assert again.held_out.samples.digest == held_out.digest


@pytest.mark.parametrize("judged", [SMALL, LARGE])
@pytest.mark.parametrize("broken", [(), (3,), (1, 4, 7, 11, 12)])
def test_broken_files_change_nothing_for_the_others(tmp_path, broken, judged):
    """Held-out images are chosen among those that can be decoded, so no label loses its only one to a broken file."""
    pictures = [picture(tmp_path, n, "aaaaaaaaaabbcc"[n]) for n in range(14)]
    for number in broken:
        pictures[number][0].file.write_bytes(b"\xff\xd8\xff\xe0 and no more %d" % number)
    good = [image for number, (image, _) in enumerate(pictures) if number not in broken]
    found = read(tmp_path, [image for image, _ in pictures], judged=judged)
    assert [left.file for left in found.left_out] == [pictures[number][0].file for number in broken]
    assert sorted(found.train.files + found.held_out.files) == sorted(image.file for image in good)
    prepared = {image.file: preprocess(drawn, SMALL)[0] for image, drawn in pictures}
    np.testing.assert_array_equal(found.train.samples.pixels, [prepared[file] for file in found.train.files])
    for image, drawn in pictures:
        if image.file in found.held_out.files:
            pixels = found.held_out.samples.pixels[found.held_out.files.index(image.file)]
            np.testing.assert_array_equal(pixels, preprocess(drawn, judged)[0])
    (tmp_path / "again").mkdir()
    without = read(tmp_path / "again", good, judged=judged)
    assert (without.train.files, without.held_out.files) == (found.train.files, found.held_out.files)


@pytest.mark.parametrize(
    ("broken", "given", "message"),
    [
        ((0, 1), True, r"the label a has no image to learn from: .*0.png is left out \(This is text.*1 held-out"),
        ((2,), True, r"there are no images to hold out: .*2.png is left out \(This is text"),
        ((1,), True, r"the label b has no image to learn from: .*1.png is left out \(This is text.* It has 1 files$"),
        ((1,), False, r"the label b has no image to learn from: .*1.png is left out \(This is text.* It has 1 files$"),
        (
            (0,),
            False,
            r"no label has two images to read, copies left aside, so .*: .*0.png is left out",
        ),
    ],
)
def test_a_part_or_a_label_without_images_is_refused(tmp_path, broken, given, message):
    images = [picture(tmp_path, n, "aba"[n])[0] for n in range(3)]
    for number in broken:
        images[number].file.write_text(f"no image {number}")
    with pytest.raises(ValueError, match=message):
        read(tmp_path, *([images[:2], images[2:]] if given else [images]))


def test_a_full_disk_is_an_error(tmp_path):
    images = [picture(tmp_path, n, "a")[0] for n in range(3)]
    (tmp_path / "train.pixels").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        read(tmp_path, images[:2], images[2:])


def test_near_copies_are_of_one_group_and_on_one_side_by_features_and_by_names(tmp_path):
    images = [picture(tmp_path, n, "ab"[n // 20])[0] for n in range(40)]
    images += [
        image._replace(file=image.file.rename(tmp_path / f"c_png.rf.{n}.png"))
        for n, image in enumerate(picture(tmp_path, n, "b")[0] for n in range(40, 43))
    ]
    once = split(Listing(train=tuple(images), held_out=None))
    drawn = torch.randn(43, 16, generator=torch.Generator().manual_seed(0))
    drawn[1:20:2] = drawn[:20:2]  # each image of a is twice there
    found = read_dataset(once, seed=0, train=SMALL, held_out=SMALL, folder=tmp_path, features=lambda _: drawn)
    groups = {}
    for part in (found.train, found.held_out):
        assert torch.equal(part.samples.features, drawn[[images_of(once).index(file) for file in part.files]])
        groups |= dict(zip(part.files, part.samples.groups.tolist(), strict=True))
    ordered = [groups[file] for file in images_of(once)]
    assert ordered[:20:2] == ordered[1:20:2]
    assert len({*ordered}) == 10 + 20 + 1
    assert not {*found.train.samples.groups.tolist()} & {*found.held_out.samples.groups.tolist()}


def images_of(once):
    return [image.file for image in once.train]
