"""A JPEG of the size of an ImageNet image, and the request that sends it."""

from functools import cache

import numpy as np
from PIL import Image

from model.shapes import draw
from tests.catalogue.case import encode
from tests.support.connection import JPEG, post


@cache
def jpeg(seed: int = 0) -> bytes:
    """500 x 334, about 50 kB: a drawn scene with enough grain to be as large as a photograph."""
    rng = np.random.default_rng(seed)
    pixels = draw(rng, size=(500, 334)).pixels + rng.normal(0, 12, (334, 500, 3))
    return encode(Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)), "JPEG", quality=80)


def classify_jpeg(query: str = "") -> bytes:
    """POST it to /classify, with a query such as `?attention=false`."""
    return post(jpeg(), JPEG, path=f"/classify{query}")
