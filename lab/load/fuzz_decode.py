"""`python -m lab.load.fuzz_decode [libFuzzer options]`: coverage-guided fuzzing of the decode function with atheris.

Needs the dependency group `fuzz`. `-max_total_time=600` is ten minutes, `-seed=1` a seed. It starts from the catalogue,
in a folder of the system's temporary one. It ends at a crash, a leak, an input of ten seconds, or any exception
other than UnsupportedType and UnusableImage.
"""

import sys
import tempfile
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["app", "PIL"]):
    from app.errors import UnsupportedType, UnusableImage
    from app.images.decode import Limits
    from app.images.preparer import Preparer

from tests.catalogue.every import CASES
from tests.support.specs import spec_of

MOST_BYTES = 20_000  # of an input that it starts from
LIMITS = Limits(max_pixels=1_000_000, max_aspect_ratio=64)
PREPARER = Preparer(limits=LIMITS, spec=spec_of((32, 32), (36, 36)), thumbnail_px=64)


def decode(data: bytes) -> None:
    try:
        done = PREPARER.prepare(data, thumbnail=True)
    except (UnsupportedType, UnusableImage):
        return
    assert done.pixels.shape == (32, 32, 3)


def main() -> None:
    warnings.simplefilter("ignore")  # as in the processes that decode images
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(CASES.values()):
            data = case.make()
            if len(data) <= MOST_BYTES:
                (Path(folder) / str(number)).write_bytes(data)
        options = ["-timeout=10", "-rss_limit_mb=4096", f"-max_len={MOST_BYTES}"]
        atheris.Setup([sys.argv[0], *options, *sys.argv[1:], folder], decode)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
