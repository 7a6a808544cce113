"""Numbers of records in running text. Each stands before a comment with its name: `608<!-- MiB of ViT-B/16 -->`."""

import re
from collections.abc import Callable

from lab.benchmarks.leaders import AMX, RATE, VNNI, is_ours
from lab.benchmarks.record import number, read_record, record_paths, rows_of

MARK = re.compile(r"(\d[\d.,]*(?: to \d[\d.,]*)?)<!-- (.+?) -->")
EVIDENCE, ROLLOUT, MASS = "evidence of the predicted label", "rollout", "mass on the shape, %"
BEHIND, FOUND = "behind the first", "mean, %"
PHOTOGRAPHS = ("real-judge", "40 photographs", BEHIND, 2)
REQUESTS = "requests behind a percentile"
READY = "resident when ready, MiB"
PROBE, NEIGHBOURS = "labels of a probe, % right", "same nearest image, %"


def fill(text: str) -> str:
    """A page with the number before each comment as its record has it. Raises KeyError for a name that is not here."""
    return MARK.sub(lambda found: f"{FIGURES[found[2]]()}<!-- {found[2]} -->", text)


def cell(record: str, row: str, column: str, **others: str) -> str | float:
    """Of the first row that begins with `row`, and has `others` in these columns."""
    rows = [found for found in rows_of(record) if others.items() <= found.items()]
    return next(found[column] for found in rows if str(next(iter(found.values()))).startswith(row))


def of(record: str, row: str, column: str, digits: int = 0, **others: str) -> Callable[[], str]:
    """The first number of a cell."""
    return lambda: f"{number(cell(record, row, column, **others)):.{digits}f}"


FIGURES: dict[str, Callable[[], str]] = {
    "MiB of ViT-B/16": of("memory", "ViT-B/16, fp32", READY),
    "images/s in int8 with VNNI": of(VNNI, "vit-serve", RATE, graph="vit-serve, int8"),
    "images/s of others with VNNI": lambda: f"{max(number(r[RATE]) for r in rows_of(VNNI) if not is_ours(r)):.0f}",
    REQUESTS: lambda: str(read_record(record_paths()[AMX]).head[REQUESTS]),
    "mass of rollout": of("maps", ROLLOUT, MASS, 1),
    "measured over positive evidence": of(*PHOTOGRAPHS, map="positive evidence"),
    "measured over positive evidence on textiles": of("real-judge", "16 textiles", BEHIND, 2, map="positive evidence"),
    "measured over the last layer": of(*PHOTOGRAPHS, map="class token (last layer)"),
    "measured behind the first on shapes": of("real-judge", "40 shapes", BEHIND, 2, map="measured"),
    "defects found against nominal": of("real-defects", "evidence against", FOUND, 1),
    "defects found by evidence": of("real-defects", "evidence", FOUND, 1),
    "defects found by one layer": of("real-defects", "evidence against nominal, last", FOUND, 1),
    "answers that depend on the defect": of("real-defects", "the answer depends", FOUND, 1),
    "random sets with the effect of evidence": of("what_if", EVIDENCE, "random sets with as much effect, %", 1),
    "a probe in int8": of("real-precision", "int8, ranges from photographs", PROBE, 1),
    "a probe in fp32": of("real-precision", "fp32", PROBE, 1),
    "neighbours in int8": of("real-precision", "int8, ranges from photographs", NEIGHBOURS, 1),
    "textiles at 224": of("real-textiles", "224 of 256", "right, %", 1),
    "textiles at 336": of("real-textiles", "336 of 384", "right, %", 1),
    "textiles that are squashed": of("real-textiles", "224, nothing", "right, %", 1),
}
