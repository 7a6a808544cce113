"""`python -m tests.benchmarks.decoding.ways FOLDER`: JPEG to the network's pixels with several libraries.

It runs in its own environment. FOLDER has images to time, NAME.jpg, and images to compare, compared/NAME.jpg. Standard
output is JSON: milliseconds by decoder and image. FOLDER/DECODER.npy gets the pixels of the images to compare, at the
input size of the demo model; see comparison.py.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
import pyvips
from PIL import Image

SECONDS = 2.0  # for each decoder and image; at least three runs

# bytes, short side after the resize, side of the crop -> uint8 (crop, crop, 3)
Way = Callable[[bytes, int, int], np.ndarray]


def main(folder: Path) -> None:
    timed = sorted(folder.glob("*.jpg"))
    times = {}
    for name, way in WAYS.items():
        times[name] = {path.stem: milliseconds(partial(way, path.read_bytes(), 256, 224)) for path in timed}
        compared = [way(path.read_bytes(), 64, 64) for path in sorted(folder.glob("compared/*.jpg"))]
        np.save(folder / f"{name}.npy", np.stack(compared))
    print(json.dumps(times))


def milliseconds(run: Callable[[], object]) -> float:
    times: list[float] = []
    while len(times) < 3 or sum(times) < SECONDS:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def pillow(data: bytes, short: int, side: int, *, draft: int = 0) -> np.ndarray:
    """Bicubic over all pixels, as the service does; with `draft`, decoded no smaller than that many times `short`."""
    with Image.open(BytesIO(data)) as file:
        if draft:
            file.draft("RGB", shortest(file.size, short * draft))
        image = file.convert("RGB")
    return middle(np.asarray(image.resize(shortest(image.size, short), Image.Resampling.BICUBIC)), side)


def opencv(data: bytes, short: int, side: int, *, interpolation: int) -> np.ndarray:
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)
    size = shortest((image.shape[1], image.shape[0]), short)
    return middle(cv2.resize(image, size, interpolation=interpolation), side)


def vips(data: bytes, short: int, side: int) -> np.ndarray:
    """`thumbnail`, which decodes a JPEG at a smaller size where it can."""
    header = pyvips.Image.new_from_buffer(data, "")
    width, height = shortest((header.width, header.height), short)
    return middle(pyvips.Image.thumbnail_buffer(data, width, height=height, size="force").numpy(), side)


def shortest(size: tuple[int, int], short: int) -> tuple[int, int]:
    """Width and height with the shorter one at `short`."""
    width, height = size
    return (short, int(short * height / width)) if width <= height else (int(short * width / height), short)


def middle(pixels: np.ndarray, side: int) -> np.ndarray:
    top, left = ((length - side) // 2 for length in pixels.shape[:2])
    return pixels[top : top + side, left : left + side]


WAYS: dict[str, Way] = {
    "Pillow, as served": pillow,
    "Pillow, draft at 4 times the size or more": partial(pillow, draft=4),
    "Pillow, draft at 2 times the size or more": partial(pillow, draft=2),
    "Pillow, draft at the size or more": partial(pillow, draft=1),
    "OpenCV, cubic": partial(opencv, interpolation=cv2.INTER_CUBIC),
    "OpenCV, area": partial(opencv, interpolation=cv2.INTER_AREA),
    "libvips, thumbnail": vips,
}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
