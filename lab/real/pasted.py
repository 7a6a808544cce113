"""Stamps pasted on photographs, so that the right patches are known; and a probe of the trained network on them."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from lab.real.data import Data

SIDE = 224  # of an image, in pixels; the network sees NETWORK_SIDE of them
NETWORK_SIDE = 112  # 8 x 8 patches
COPIES = {"train": 2, "val": 1}  # of each stamp, on other photographs
LEAST, MOST = 0.4, 0.75  # the longer side of a stamp, in sides of the image
PHOTO_SIDE = 640  # to which the longer side of a photograph is reduced before it is cut


class Pasted(NamedTuple):
    part: str
    label: str
    image: Image.Image
    thing: Image.Image  # L: how much of each pixel is the stamp's


def pasted(data: Data) -> Iterator[Pasted]:
    """The same images every time; those of `val` show no stamp of `train`."""
    rng = np.random.default_rng(0)
    photos = [_photo(file) for file in sorted(data.photos.iterdir())]
    for part, of_data in (("train", "train"), ("val", "test")):
        for file in data.cut_out[of_data]:
            for _ in range(COPIES[part]):
                yield Pasted(part, file.parent.name, *_paste(Image.open(file).convert("RGBA"), photos, rng))


def write(data: Data, folder: Path) -> None:
    """As `python -m export fit` reads them."""
    for number, one in enumerate(pasted(data)):
        place = folder / one.part / one.label
        place.mkdir(parents=True, exist_ok=True)
        one.image.save(place / f"{number:03}.png")


def _photo(file: Path) -> Image.Image:
    opened = Image.open(file)
    opened.draft("RGB", (PHOTO_SIDE, PHOTO_SIDE))
    image = opened.convert("RGB")
    image.thumbnail((PHOTO_SIDE, PHOTO_SIDE))
    return image


def _paste(stamp: Image.Image, photos: list[Image.Image], rng: np.random.Generator) -> tuple[Image.Image, Image.Image]:
    photo = photos[rng.integers(len(photos))]
    side = min(photo.size)
    left, top = (int(rng.integers(length - side + 1)) for length in photo.size)
    image = photo.crop((left, top, left + side, top + side)).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    stamp = stamp.crop(stamp.getchannel("A").getbbox())
    scale = rng.uniform(LEAST, MOST) * SIDE / max(stamp.size)
    stamp = stamp.resize([max(round(length * scale), 1) for length in stamp.size], Image.Resampling.BICUBIC)
    left, top = (int(rng.integers(SIDE - length + 1)) for length in stamp.size)
    place = (left, top)
    image.paste(stamp, place, stamp)
    thing = Image.new("L", image.size)
    thing.paste(stamp.getchannel("A"), place)
    return image, thing
