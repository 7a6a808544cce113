"""What one core decodes, stage by stage, and what share of a request that is.

The model of the share is ViT-S/16 in fp32 on one thread, for labels.
"""

import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tqdm import tqdm

from app.images.preparer import THUMBNAIL_PX, Preparer, thumbnail_of
from app.images.preprocess import preprocess
from lab.benchmarks.random_model import random_bundle
from lab.benchmarks.raw import of_bundle
from lab.benchmarks.record import Row, Rows
from lab.benchmarks.rounds import in_turn
from lab.benchmarks.stages import LIMITS, SPEC, cpu_ms, decoded
from tests.catalogue.case import encode
from tests.support.pictures import jpeg

SIZES = ((224, 224), (500, 334), (1280, 853), (4000, 3000))
PREPARER = Preparer(limits=LIMITS, spec=SPEC, thumbnail_px=THUMBNAIL_PX)
ROUNDS = 15


def measure() -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        run = of_bundle(random_bundle(Path(folder), "S/16"), "classify")(1, 1)
        model = partial(run, 1)
        pictures = (encode(decoded(jpeg()).resize(size), "JPEG", quality=90) for size in tqdm(SIZES, desc="sizes"))
        return [row(picture, model) for picture in pictures]


def row(data: bytes, model: Callable[[], object]) -> Row:
    image = decoded(data)
    prepare = partial(PREPARER.prepare, data)
    stages: dict[str, Callable[[], object]] = {
        "decode": partial(decoded, data),
        "resize": partial(preprocess, image, SPEC),
        "thumbnail": partial(thumbnail_of, image, THUMBNAIL_PX),
        "labels": partial(prepare, thumbnail=False),
        "maps": partial(prepare, thumbnail=True),
        "model": model,
    }
    times = in_turn({name: partial(cpu_ms, stage) for name, stage in stages.items()}, ROUNDS)
    median = {name: statistics.median(of_stage) for name, of_stage in times.items()}
    return {
        "JPEG": f"{image.width}×{image.height}",
        "decode, ms": round(median["decode"], 2),
        "resize and crop, ms": round(median["resize"], 2),
        "thumbnail for maps, ms": round(median["thumbnail"], 2),
        "images/s a core, labels": round(1000 / median["labels"]),
        "labels and maps": round(1000 / median["maps"]),
        "share of decoding and model": f"{median['labels'] / (median['labels'] + median['model']):.0%}",
    }
