"""The stages of decoding an image, and their CPU time. Imports little: it is run with the memory of a decoder, too.

`python -m lab.benchmarks.stages resize.c`, or `Pillow`, which then resizes alone: answers each line of standard input,
a filter and a file, with a line of JSON.
"""

import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from app.images import resize
from app.images.colors import upright_rgb
from app.images.decode import Limits, opened
from app.images.preparer import THUMBNAIL_PX, thumbnail_of
from app.images.preprocess import preprocess
from tests.support.specs import spec_of

LIMITS = Limits(max_pixels=50_000_000)
CALLS = 3  # one after the other, as in a process that is busy
PILLOW = "Pillow"


def stages(data: bytes, interpolation: str) -> dict[str, Any]:
    """CPU ms of each stage, and the hash of the pixels."""
    spec = spec_of((224, 224), (256, 256), interpolation=interpolation)
    labels = least(lambda: preprocess(decoded(data), spec))
    image = decoded(data)
    return {
        "labels": labels,
        "resize": least(lambda: preprocess(image, spec)),
        "thumbnail": least(lambda: thumbnail_of(image, THUMBNAIL_PX)),
        "pixels": hashlib.sha256(preprocess(image, spec)[0].tobytes()).hexdigest(),
    }


def least(work: Callable[[], object]) -> float:
    return min(cpu_ms(work) for _ in range(CALLS))


def cpu_ms(work: Callable[[], object]) -> float:
    """CPU time of this process for one call."""
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


def decoded(data: bytes) -> Image.Image:
    with opened(data, LIMITS) as (image, _):
        return upright_rgb(image)


if __name__ == "__main__":
    if sys.argv[1:] == [PILLOW]:
        resize.__dict__["fast"] = lambda: None
    for line in sys.stdin:
        name, _, file = line.rstrip("\n").partition(" ")
        print(json.dumps(stages(Path(file).read_bytes(), name)), flush=True)
