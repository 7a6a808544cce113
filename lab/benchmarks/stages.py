"""The stages of decoding an image, and their CPU time. Imports little: it runs in processes that decode, too."""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PIL import Image

from app.images import resize
from app.images.colors import upright_rgb
from app.images.decode import Limits, opened
from app.images.preparer import thumbnail_of
from app.images.preprocess import preprocess
from tests.support.specs import spec_of

SPEC = spec_of((224, 224), (256, 256))
LIMITS = Limits(max_pixels=50_000_000, max_aspect_ratio=64)
THUMBNAIL_PX = 640
CALLS = 3  # one after the other, as in a process that is busy


@dataclass(frozen=True)
class Stages:
    """The work of a process that decodes. It answers with the CPU ms of each stage, and the hash of the pixels."""

    library: bool  # whether resize.c is used
    interpolation: str

    def __setstate__(self, state: dict[str, Any]) -> None:
        """In the fork server."""
        vars(self).update(state)
        if not self.library:
            resize.__dict__["fast"] = lambda: None
        resize.fast()

    def __call__(self, data: bytes, claimed_pixels: int, thumbnail: bool) -> bytes:
        spec = spec_of((224, 224), (256, 256), interpolation=self.interpolation)
        labels = least(lambda: preprocess(decoded(data), spec))
        image = decoded(data)
        times = {
            "labels": labels,
            "resize": least(lambda: preprocess(image, spec)),
            "thumbnail": least(lambda: thumbnail_of(image, THUMBNAIL_PX)),
            "pixels": hashlib.sha256(preprocess(image, spec)[0].tobytes()).hexdigest(),
        }
        return json.dumps(times).encode()


def cpu_ms(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """CPU time of this process, or by another clock, for one call."""
    start = clock()
    work()
    return 1000 * (clock() - start)


def least(work: Callable[[], object]) -> float:
    """CPU time of this thread for one call: that of the process is coarse while its limit is set."""
    return min(cpu_ms(work, time.thread_time) for _ in range(CALLS))


def decoded(data: bytes) -> Image.Image:
    with opened(data, LIMITS) as (image, _):
        return upright_rgb(image)
