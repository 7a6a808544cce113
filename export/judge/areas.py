"""Deletion and insertion of several maps of one image, under each fill, with every covered image run once."""

from collections.abc import Awaitable, Callable, Sequence

import numpy as np
import numpy.typing as npt

from app.maps.faithfulness import Faithfulness, Numbers
from app.maps.judgement import FILLS
from app.maps.occlusion import Fill

STEPS = 6  # of each curve

Scores = Callable[[npt.NDArray[np.bool_], Fill], Awaitable[Numbers]]  # (n,) of a label, of what is covered (n, patches)


async def areas(maps: Sequence[npt.NDArray[np.float32]], scores: Scores) -> Numbers:
    """(maps, fills, 2): areas of deletion and insertion under the order of each map (rows, columns)."""
    judged = [Faithfulness.of(values, steps=STEPS, random_orders=0, seed=b"") for values in maps]
    counts = np.cumsum([len(one.covered) for one in judged])[:-1]
    covered, place = np.unique(np.concatenate([one.covered for one in judged]), axis=0, return_inverse=True)
    places = np.split(place, counts)
    of_fills = [await scores(covered, fill) for fill in FILLS]
    return np.array([[one.areas(found[at]) for found in of_fills] for one, at in zip(judged, places, strict=True)])
