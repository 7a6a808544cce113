"""One row for each map, from how faithful it was on every image."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from app.maps.choice import Choice
from app.maps.faithfulness import Numbers, ranked
from app.maps.judgement import FILLS, RANDOM, Begin, JudgedMap, OnObject
from export.judge.images import WAYS, JudgedImage

HOTTEST = 5  # patches
SURE = 2  # standard errors, from which on a map is worse than the most faithful one


class Behind(NamedTuple):
    """The best of several methods, in the mean over images measured with all of them."""

    mean: float
    error: float  # the standard error of the mean of the differences, as one image is hard for all methods


def behind(figures: Numbers) -> list[Behind]:
    """Of each method (images, methods), the larger the better."""
    differences = figures[:, [figures.mean(axis=0).argmax()]] - figures
    errors = differences.std(axis=0, ddof=1) / np.sqrt(len(figures))
    return [Behind(*pair) for pair in zip(differences.mean(axis=0).tolist(), errors.tolist(), strict=True)]


def table(images: Sequence[JudgedImage]) -> tuple[JudgedMap, ...]:
    """The most faithful map first. At least two images."""
    areas = np.array([image.areas for image in images])  # (images, maps, fills, 2)
    deletion, insertion = areas.mean(axis=0).transpose(2, 0, 1)
    faithfulness = (areas[..., 1] - areas[..., 0]).sum(axis=2)
    rows = [
        JudgedMap(
            title=title,
            **_asked(WAYS[title]),
            deletion=dict(zip(FILLS, deletion[place].tolist(), strict=True)),
            insertion=dict(zip(FILLS, insertion[place].tolist(), strict=True)),
            faithfulness=float(faithfulness[:, place].mean()),
            behind=less.mean,
            error=less.error,
            on_object=_on_object(images, title),
        )
        for place, (title, less) in enumerate(zip(images[0].maps, behind(faithfulness), strict=True))
    ]
    return tuple(sorted(rows, key=lambda row: row.behind))


def _asked(choice: Choice | None) -> dict[str, Any]:
    """How a request asks for a map, and what it costs."""
    if choice is None:
        return {"method": RANDOM, "passes": 0}
    passes = choice.passes if choice.method == "measured" else 0
    return {"method": choice.method, "layer": choice.layer, "passes": passes}


def sentence(maps: Sequence[JudgedMap], images: int) -> str:
    """Which map to believe, as far as so many images can say."""
    best, *others = _most_faithful(maps)
    where = f"On {images:,} of your images"
    if _by_chance(maps):
        return f"{where} no map was surely better than a random one."
    about = f", and {_listed([row.title for row in others])} about as much" if others else ""
    return f"{where} {best.title} was the most faithful{about}."


def begin(maps: Sequence[JudgedMap]) -> Begin | None:
    """The most faithful map that takes no passes, if any is surely better than a random one."""
    if _by_chance(maps):
        return None
    first = next(row for row in maps if not row.passes)
    return Begin(method=first.method, layer=first.layer)


def _most_faithful(maps: Sequence[JudgedMap]) -> list[JudgedMap]:
    """The first, and those that are not surely worse."""
    return [row for row in maps if row.behind <= SURE * row.error]


def _by_chance(maps: Sequence[JudgedMap]) -> bool:
    return any(row.method == RANDOM for row in _most_faithful(maps))


def _listed(titles: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(titles[:-1]), titles[-1])))


def _on_object(images: Sequence[JudgedImage], title: str) -> OnObject | None:
    found = [image.on_object[ranked(image.maps[title])[:HOTTEST]] for image in images if image.on_object is not None]
    if not found:
        return None
    hit = np.array(found)  # (images, HOTTEST)
    return OnObject(
        images=len(hit),
        hottest=float(hit[:, 0].mean()),
        five_hottest=float(hit.mean()),
        found=float(hit.any(axis=1).mean()),
    )
