"""What decoding and preparing photographs takes, by their size and by how their JPEG is written."""

import statistics
from collections import defaultdict
from functools import partial
from pathlib import Path

from PIL import Image

from app.images.preparer import THUMBNAIL_PX, Preparer
from lab.benchmarks.record import Row, Rows
from lab.benchmarks.stages import LIMITS, cpu_ms, decoded
from lab.real.data import Data
from tests.support.specs import spec_of

SIZES = (2, 6, 12, 30)  # megapixels, at most
PREPARER = Preparer(limits=LIMITS, spec=spec_of((224, 224), (256, 256)), thumbnail_px=THUMBNAIL_PX)


def measure(data: Data) -> Rows:
    groups: dict[tuple[int, str], list[Path]] = defaultdict(list)
    for file in sorted(data.photos.iterdir()):
        with Image.open(file) as image:
            megapixels = image.width * image.height / 1e6
            kind = "progressive" if image.info.get("progressive") else "baseline"
        groups[next(size for size in SIZES if megapixels <= size), kind].append(file)
    return [_row(f"{size} megapixels at most, {kind}", files) for (size, kind), files in sorted(groups.items())]


def _row(name: str, files: list[Path]) -> Row:
    contents = [file.read_bytes() for file in files]
    median = {
        stage: statistics.median(cpu_ms(partial(work, data)) for data in contents)
        for stage, work in (("decode", decoded), ("all for labels", partial(PREPARER.prepare, thumbnail=False)))
    }
    return {
        "photographs": name,
        "files": len(files),
        "MB, median": round(statistics.median(len(data) for data in contents) / 1e6, 1),
        **{f"{stage}, CPU ms": round(of_stage) for stage, of_stage in median.items()},
    }
