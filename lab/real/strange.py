"""Images of nothing that the network of the stamps has learned: textures, noise, text, drawings and photographs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from lab.real.data import Data

COUNT = 40  # of each kind
SIDE = 384  # pixels
TILE = (60, 200)  # pixels
Images = Iterator[Image.Image]


def textures(data: Data) -> Images:
    """Tiles that are cut from the photographs, each with its mirror images beside it."""
    files, rng = sorted(data.photos.iterdir()), np.random.default_rng(0)
    for number in range(COUNT):
        photo, side = Image.open(files[number % len(files)]).convert("RGB"), int(rng.integers(*TILE))
        left, top = (int(rng.integers(0, length - side)) for length in photo.size)
        tile = np.asarray(photo.crop((left, top, left + side, top + side)))
        both = np.concatenate([tile, tile[:, ::-1]], axis=1)
        four = np.concatenate([both, both[::-1]])
        again = -(-SIDE // len(four))
        yield Image.fromarray(np.tile(four, (again, again, 1))[:SIDE, :SIDE])


def noise(data: Data) -> Images:
    """Of every colour alike, or around one."""
    rng = np.random.default_rng(1)
    for number in range(COUNT):
        around = rng.normal(rng.uniform(40, 215, 3), rng.uniform(5, 60), (SIDE, SIDE, 3)).clip(0, 255)
        pixels = around if number % 2 else rng.integers(0, 256, (SIDE, SIDE, 3))
        yield Image.fromarray(pixels.astype(np.uint8))


def text(data: Data) -> Images:
    """Pages of the licence, black on white."""
    words, rng = Path("LICENSE").read_text().split(), np.random.default_rng(2)
    for _ in range(COUNT):
        page = Image.new("RGB", (SIDE, SIDE), "white")
        size = int(rng.integers(12, 48))
        pen, font = ImageDraw.Draw(page), ImageFont.load_default(size=size)
        for top in range(10, SIDE, round(1.3 * size)):
            first = int(rng.integers(len(words) - 12))
            pen.text((10, top), " ".join(words[first : first + 12]), fill="black", font=font)
        yield page


def drawings(data: Data) -> Images:
    """Cartoons and toys among the stamps, on white as these are."""
    for file in data.drawings[:: len(data.drawings) // COUNT][:COUNT]:
        yield Image.open(file)


def photographs(data: Data) -> Images:
    for file in sorted(data.photos.iterdir()):
        yield Image.open(file).convert("RGB")


KINDS: dict[str, Callable[[Data], Images]] = {
    kind.__name__: kind for kind in (textures, noise, text, drawings, photographs)
}
