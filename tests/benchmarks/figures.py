"""Numbers of records in running text. Each stands before a comment with its name: `608<!-- MiB of ViT-B/16 -->`."""

import re
from collections.abc import Callable

from tests.benchmarks.record import ROOT, Rows, read_record
from tests.benchmarks.sentences import OURS, number

MARK = re.compile(r"(\d[\d.,]*(?: to \d[\d.,]*)?)<!-- (.+?) -->")
EVIDENCE, POSITIVE = "evidence of the predicted label", "positive evidence of the predicted label"
LAST_LAYER, ROLLOUT = "last layer, mean over heads", "rollout"
HOTTEST, MASS, INSERTION = "hottest patch on the shape, %", "mass on the shape, %", "insertion area"
READY, START = "resident when ready, MiB", "second start, s"


def fill(text: str) -> str:
    """A page with the number before each comment as its record has it. Raises KeyError for a name that is not here."""
    return MARK.sub(lambda found: f"{FIGURES[found[2]]()}<!-- {found[2]} -->", text)


def rows(record: str) -> Rows:
    (path,) = ROOT.glob(f"tests/*/{record}.json")
    return read_record(path).rows


def cell(record: str, row: str, column: str) -> str | float:
    """Of the first row that begins with `row`."""
    return next(found[column] for found in rows(record) if str(next(iter(found.values()))).startswith(row))


def of(record: str, row: str, column: str, digits: int = 0) -> Callable[[], str]:
    """The first number of a cell."""
    return lambda: f"{number(cell(record, row, column)):.{digits}f}"


def gain(record: str, row: str, over: str, column: str, digits: int) -> Callable[[], str]:
    """By how much a row is above another in a column."""
    return lambda: f"{number(cell(record, row, column)) - number(cell(record, over, column)):.{digits}f}"


def deletion_gain() -> str:
    """Of evidence over attention and every method with a backward pass: the least."""
    column = "deletion area"
    backward = ("AttnLRP", "CP-LRP", "Chefer", "positive attention", "GradCAM", "input x", "integrated")
    least = min(number(cell("maps", other, column)) for other in (LAST_LAYER, ROLLOUT, *backward))
    return f"{least - number(cell('maps', EVIDENCE, column)):.3f}"


def hottest_span() -> str:
    """Points between the maps of attention and evidence."""
    maps = (LAST_LAYER, ROLLOUT, EVIDENCE, "evidence of the true label", POSITIVE)
    shares = [number(cell("maps", name, HOTTEST)) for name in maps]
    return f"{max(shares) - min(shares):.1f}"


def further_image(side: int) -> float:
    """MiB that one more image of ViT-S/16 takes, labels and maps."""
    (row,) = (r for r in rows("cost") if (r["model"], r["side, pixels"]) == ("ViT-S/16", side))
    (column,) = (name for name in row if name.startswith("labels and maps, peak MiB"))
    (small, large), (less, more) = (
        [float(part) for part in text.split(" / ")] for text in (column.rpartition("batch ")[2], str(row[column]))
    )
    return (more - less) / (large - small)


def decoding() -> str:
    stages = ("decode, ms", "resize and crop, ms")
    return f"{sum(number(cell('intake', '500×334', stage)) for stage in stages):.1f}"


FIGURES: dict[str, Callable[[], str]] = {
    "MiB of the demo": of("memory", "demo", READY),
    "seconds until the demo is ready": of("memory", "demo", START, 1),
    "MiB of ViT-B/16": of("memory", "ViT-B/16, fp32", READY),
    "seconds until ViT-B/16 is ready": of("memory", "ViT-B/16, fp32", START, 1),
    "MiB of an image of 128": lambda: f"{further_image(128):.0f}",
    "GiB of an image of 512": lambda: f"{further_image(512) / 1024:.1f}",
    "ms of decoding": decoding,
    "ms of a request with pixels": of("doors", "POST /v2/.../infer, UINT8", "CPU ms per image, server", 1),
    "ms of ViT-S/16 in fp32": of("servers", OURS, "CPU ms per image"),
    "change by draft mode": of("decoding", "Pillow, draft at 4", "probability difference, largest", 3),
    "images of the maps": of("maps", ROLLOUT, "images"),
    "hottest of rollout": of("maps", ROLLOUT, HOTTEST, 1),
    "mass of rollout": of("maps", ROLLOUT, MASS, 1),
    "deletion of evidence": deletion_gain,
    "deletion of positive evidence": gain("maps", POSITIVE, EVIDENCE, "deletion area", 3),
    "insertion of positive evidence": gain("maps", POSITIVE, EVIDENCE, INSERTION, 3),
    "hottest of AttnLRP": gain("maps", "AttnLRP", EVIDENCE, HOTTEST, 1),
    "between attention and evidence": hottest_span,
}
