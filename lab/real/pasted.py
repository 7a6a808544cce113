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
    photos = photographs(data)
    for part, of_data in (("train", "train"), ("val", "test")):
        for file in data.cut_out[of_data]:
            for _ in range(COPIES[part]):
                image = ground(photos, SIDE, rng)
                stamp = cut_out(file, rng.uniform(LEAST, MOST) * SIDE)
                thing = paste(stamp, image, somewhere(stamp, SIDE, rng))
                yield Pasted(part, file.parent.name, image, thing)


def write(data: Data, folder: Path) -> None:
    """As `python -m export fit` reads them."""
    for number, one in enumerate(pasted(data)):
        place = folder / one.part / one.label
        place.mkdir(parents=True, exist_ok=True)
        one.image.save(place / f"{number:03}.png")


def photographs(data: Data) -> list[Image.Image]:
    """All of them, reduced."""
    return [_photo(file) for file in sorted(data.photos.iterdir())]


def ground(photos: list[Image.Image], side: int, rng: np.random.Generator) -> Image.Image:
    """A square part of one of them, with so many pixels on each side."""
    photo = photos[rng.integers(len(photos))]
    cut = min(photo.size)
    left, top = (int(rng.integers(length - cut + 1)) for length in photo.size)
    return photo.crop((left, top, left + cut, top + cut)).resize((side, side), Image.Resampling.BICUBIC)


def cut_out(file: Path, longer: float) -> Image.Image:
    """A stamp without its margin, whose longer side has so many pixels; RGBA."""
    stamp = Image.open(file).convert("RGBA")
    stamp = stamp.crop(stamp.getchannel("A").getbbox())
    scale = longer / max(stamp.size)
    return stamp.resize([max(round(length * scale), 1) for length in stamp.size], Image.Resampling.BICUBIC)


def paste(stamp: Image.Image, image: Image.Image, place: tuple[int, int]) -> Image.Image:
    """Put it on the image; how much of each pixel is the stamp's, L."""
    image.paste(stamp, place, stamp)
    thing = Image.new("L", image.size)
    thing.paste(stamp.getchannel("A"), place)
    return thing


def somewhere(stamp: Image.Image, side: int, rng: np.random.Generator) -> tuple[int, int]:
    """A place (left, top) for it inside of a square."""
    left, top = (int(rng.integers(side - length + 1)) for length in stamp.size)
    return left, top


def _photo(file: Path) -> Image.Image:
    opened = Image.open(file)
    opened.draft("RGB", (PHOTO_SIDE, PHOTO_SIDE))
    image = opened.convert("RGB")
    image.thumbnail((PHOTO_SIDE, PHOTO_SIDE))
    return image
