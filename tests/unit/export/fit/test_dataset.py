"""export/fit/dataset.py: pixels as the service prepares them, and files that cannot be decoded."""

import numpy as np
import pytest
from PIL import Image

from app.images.preprocess import preprocess
from export.fit.dataset import read_dataset
from export.fit.listing import Labelled
from export.fit.split import Split
from tests.support.specs import spec_of

SMALL = spec_of((24, 32), (28, 36))
LARGE = spec_of((28, 36), (32, 41))


def split(train, held_out):
    return Split(train=tuple(train), held_out=tuple(held_out), chosen=True, copies=(), across=0, left_out=())


def picture(folder, number, label, **options):
    path = folder / f"{number}.png"
    image = Image.fromarray(np.random.default_rng(number).integers(0, 256, (47, 60, 3), dtype=np.uint8))
    image.save(path, **options)
    return Labelled(path, label), image


def test_pixels_are_those_of_the_service_in_two_framings(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned
    pictures = [picture(tmp_path, n, "ab"[n % 2], exif=exif) for n in range(8)]
    images = split([i for i, _ in pictures[:6]], [i for i, _ in pictures[6:]])
    dataset = read_dataset(images, train=LARGE, held_out=SMALL, folder=tmp_path)
    upright = [image.transpose(Image.Transpose.ROTATE_270) for _, image in pictures]
    expected = [preprocess(image, LARGE if n < 6 else SMALL)[0] for n, image in enumerate(upright)]
    train, held_out = dataset.train.samples, dataset.held_out.samples
    np.testing.assert_array_equal(train.pixels.numpy(), expected[:6])
    np.testing.assert_array_equal(held_out.pixels.numpy(), expected[6:])
    assert (train.classes.tolist(), held_out.classes.tolist()) == ([0, 1] * 3, [0, 1])
    assert (dataset.labels, dataset.count(dataset.train)) == (("a", "b"), {"a": 3, "b": 3})
    assert dataset.train.files == tuple(image.file for image in images.train)


def test_broken_files_are_left_out_with_the_reason(tmp_path):
    images = [picture(tmp_path, n, "a")[0] for n in range(4)]
    images[1].file.write_bytes(images[1].file.read_bytes()[:200])
    images[2].file.write_text("no image")
    images[3].file.unlink()
    images.append(picture(tmp_path, 4, "a")[0])
    dataset = read_dataset(split(images, images[4:]), train=SMALL, held_out=SMALL, folder=tmp_path)
    assert dataset.train.files == (images[0].file, images[4].file)
    reasons = [(left.file.name, left.reason.split(":")[0]) for left in dataset.left_out]
    bad = "This looks like PNG but cannot be decoded.", "This is not an image of an accepted type"
    assert reasons == [("1.png", bad[0]), ("2.png", bad[1]), ("3.png", "No such file or directory")]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ((0, 1), "there are no images to learn from; files that cannot be decoded: 2"),
        ((2,), "there are no images to hold out; files that cannot be decoded: 1"),
        ((1,), "the label b has no image to learn from"),
    ],
)
def test_a_part_or_a_label_without_images_is_refused(tmp_path, broken, message):
    images = [picture(tmp_path, n, "aba"[n])[0] for n in range(3)]
    for number in broken:
        images[number].file.write_text("no image")
    with pytest.raises(ValueError, match=message):
        read_dataset(split(images[:2], images[2:]), train=SMALL, held_out=SMALL, folder=tmp_path)


def test_a_full_disk_is_an_error(tmp_path):
    images = [picture(tmp_path, n, "a")[0] for n in range(3)]
    (tmp_path / "train.pixels").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        read_dataset(split(images[:2], images[2:]), train=SMALL, held_out=SMALL, folder=tmp_path)
