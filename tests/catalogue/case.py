"""One input of the catalogue: how it is made, what the service answers, and what a valid image shows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

Colors = tuple[tuple[int, int, int], ...]  # of the quarters: left and right above, left and right below

SIZE = (48, 32)
COLORS: Colors = ((220, 30, 30), (30, 200, 60), (40, 60, 210), (240, 230, 80))
GRAYS: Colors = tuple((gray,) * 3 for gray in (20, 90, 160, 250))
WHITES: Colors = ((255, 255, 255),) * 4
BINARY: Colors = ((0, 0, 0), (255, 255, 255)) * 2


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    make: Callable[[], bytes]
    statuses: frozenset[int]
    shows: Colors | None = None  # by the decoded image, where it is valid and has quarters
    tolerance: int = 0


def good(name: str, make: Callable[[], bytes], shows: Colors | None = COLORS, *, tolerance: int = 0) -> Case:
    return Case(name=name, make=make, statuses=frozenset({200}), shows=shows, tolerance=tolerance)


def bad(name: str, make: Callable[[], bytes], *statuses: int) -> Case:
    """422 unless said otherwise."""
    return Case(name=name, make=make, statuses=frozenset(statuses or {422}))


def quarters(colors: Colors = COLORS) -> Image.Image:
    image = Image.new("RGB", (2, 2))
    image.putdata(colors)
    return image.resize(SIZE, Image.Resampling.NEAREST)


def grays() -> np.ndarray:
    """(height, width)."""
    return np.asarray(quarters(GRAYS))[..., 0]


def translucent(alpha: int) -> Image.Image:
    """The quarters, fully transparent at an alpha of 0."""
    image = quarters().convert("RGBA")
    image.putalpha(alpha)
    return image


def grain() -> Image.Image:
    """So much detail that half a file cannot be decoded."""
    return Image.fromarray(np.random.default_rng(3).integers(0, 256, (32, 48, 3), dtype=np.uint8))


def encode(image: Image.Image, format: str = "PNG", *, frames: int = 1, **options: Any) -> bytes:
    """What is behind the first of several frames has other colours."""
    if frames > 1:
        options |= {
            "save_all": True,
            "append_images": [Image.new("RGB", SIZE, (i % 256, 0, 0)) for i in range(frames - 1)],
        }
    out = BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def exif(orientation: object) -> Image.Exif:
    block = Image.Exif()
    block[0x0112] = orientation
    return block


STORED = {  # how an image is turned before it is stored under an orientation
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


def stored(orientation: int, upright: Image.Image | None = None) -> Image.Image:
    """The quarters if no image is given."""
    upright, turn = upright or quarters(), STORED[orientation]
    return upright if turn is None else upright.transpose(turn)


def oriented(format: str, make: Callable[..., bytes], *, tolerance: int = 0) -> list[Case]:
    """The same image under each orientation. `make` takes an image and Exif."""
    return [
        good(f"{format}, orientation {n}", partial(make, stored(n), exif=exif(n)), tolerance=tolerance) for n in STORED
    ]


def cuts(format: str, make: Callable[[Image.Image], bytes]) -> list[Case]:
    def first(percent: int) -> bytes:
        data = make(grain())
        return data[: len(data) * percent // 100]

    return [bad(f"{format}, the first {percent} %", partial(first, percent)) for percent in (10, 50, 90, 99)]
