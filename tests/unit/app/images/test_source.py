"""app/images/source.py and client/vit_serve_client/source.py: images in memory, and files that are some."""

import os
import socket
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.images.source import LARGEST, file_of

pytestmark = pytest.mark.timeout(60)

PIXELS = np.arange(4 * 5 * 4, dtype=np.uint8).reshape(4, 5, 4)


def test_the_code_of_both_is_the_same():
    assert Path("client/vit_serve_client/source.py").read_text() == Path("app/images/source.py").read_text()


@pytest.mark.parametrize("array", [PIXELS, PIXELS[:, :, :3], PIXELS[:, ::-1, :3], PIXELS[:, :, 0]])
def test_pixels_are_sent_as_they_are(array):
    for image in (array, Image.fromarray(array)):
        assert np.array_equal(np.asarray(Image.open(BytesIO(file_of(image)))), array)


@pytest.mark.parametrize("mode", ["CMYK", "YCbCr", "HSV", "F", "1", "P", "LA"])
def test_every_kind_of_image_of_pil_is_sent(mode):
    assert Image.open(BytesIO(file_of(Image.new("L", (3, 2), 200).convert(mode)))).size == (3, 2)


@pytest.mark.parametrize(
    ("image", "says"),
    [
        (PIXELS / 255, "not float64 (4, 5, 4)"),
        (PIXELS[:, :, :3].transpose(2, 0, 1), "not uint8 (3, 4, 5)"),
        (None, "not NoneType"),
    ],
)
def test_what_is_no_image_is_named(image, says):
    with pytest.raises(TypeError) as raised:
        file_of(image)
    assert str(raised.value).endswith(says)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pipe.jpg", "it is a FIFO, not a file"),
        ("endless.jpg", "it is a device, not a file"),
        ("socket.jpg", "it is a socket, not a file"),
        ("large.jpg", "it has 536,870,913 bytes, more than 536,870,912"),
        ("a\0b.jpg", "embedded null byte"),
        ("gone.jpg", "No such file or directory"),
        (".", "Is a directory"),
    ],
)
def test_what_is_no_file_is_not_opened(tmp_path, monkeypatch, name, reason):
    monkeypatch.chdir(tmp_path)  # the name of a socket has few letters
    os.mkfifo("pipe.jpg")
    Path("endless.jpg").symlink_to("/dev/zero")
    Path("large.jpg").touch()
    os.truncate("large.jpg", LARGEST + 1)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.jpg")
        with pytest.raises(OSError, match=reason):
            file_of(name)


def test_a_file_is_read_and_one_without_a_size_is_empty(tmp_path):
    """/proc has files that look like any other and do not end."""
    (tmp_path / "good.jpg").write_bytes(b"good")
    assert [file_of(path) for path in (tmp_path / "good.jpg", "/proc/self/status")] == [b"good", b""]
