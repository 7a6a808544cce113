"""vit_serve_client/pixels.py: images in memory."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from vit_serve_client.pixels import png

PIXELS = np.arange(4 * 5 * 4, dtype=np.uint8).reshape(4, 5, 4)


@pytest.mark.parametrize("array", [PIXELS, PIXELS[:, :, :3], PIXELS[:, ::-1, :3], PIXELS[:, :, 0]])
def test_pixels_are_sent_as_they_are(array):
    for image in (array, Image.fromarray(array)):
        assert np.array_equal(np.asarray(Image.open(BytesIO(png(image)))), array)


@pytest.mark.parametrize("mode", ["CMYK", "YCbCr", "HSV", "F", "1", "P", "LA"])
def test_every_kind_of_image_of_pil_is_sent(mode):
    assert Image.open(BytesIO(png(Image.new("L", (3, 2), 200).convert(mode)))).size == (3, 2)


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
        png(image)
    assert str(raised.value).endswith(says)
