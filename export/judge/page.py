"""The page of a judgement: its table, and some images with all of their maps side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.maps.judgement import FILLS, RANDOM, JudgedMap, Judgement
from export.fit.report.judged import percent
from export.fit.report.shown import drawn, to_draw_on
from export.folder import evenly
from export.html import render
from export.judge.images import JudgedImage

TEMPLATE = Path(__file__).with_name("page.html")
SHOWN = 10  # images, chosen evenly
SIGNED = ("evidence", "measured")  # methods
HEADS = ["map", "passes", "faithfulness", "behind the first"]
AREAS = [f"{area}, {fill}" for fill in FILLS for area in ("deletion", "insertion")]
OBJECTS = ["hottest on the object", "of the five hottest", "one of the five"]


def page(name: str, judgement: Judgement, images: Sequence[JudgedImage]) -> str:
    objects = judgement.maps[0].on_object
    return render(
        TEMPLATE,
        name=name,
        headline=judgement.says,
        heads=[*HEADS, *(AREAS if objects is None else AREAS + OBJECTS)],
        rows=[_row(row) for row in judgement.maps],
        objects=objects.images if objects else 0,
        images=[_shown(image, judgement) for image in evenly(images, SHOWN)],
    )


def lines(judgement: Judgement) -> str:
    """The first columns of the table, for a terminal."""
    rows = [HEADS, *([str(cell) for cell in _row(row)[: len(HEADS)]] for row in judgement.maps)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _row(row: JudgedMap) -> list[str]:
    areas = [f"{of[fill]:.3f}" for fill in FILLS for of in (row.deletion, row.insertion)]
    found = row.on_object
    shares = [percent(share) for share in (found.hottest, found.five_hottest, found.found)] if found else []
    behind = f"{row.behind:.3f} ± {row.error:.3f}" if row.behind else ""
    return [row.title, str(row.passes), f"{row.faithfulness:.3f}", behind, *areas, *shares]


def _shown(judged: JudgedImage, judgement: Judgement) -> dict[str, Any]:
    image, titles = to_draw_on(judged.image), [*judged.maps]
    faithfulness = (judged.areas[..., 1] - judged.areas[..., 0]).sum(axis=1)
    maps = []
    for row in judgement.maps:
        if row.method == RANDOM:
            continue
        values = judged.maps[row.title]
        png = drawn(values, image, signed=row.method in SIGNED)
        maps.append((row.title, f"{faithfulness[titles.index(row.title)]:.2f}", png))
    return {
        "file": str(judged.file),
        "label": judged.label,
        "score": percent(judged.score),
        "jpeg": image.thumbnail,
        "maps": maps,
    }
