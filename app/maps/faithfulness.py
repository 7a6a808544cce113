"""Is a map faithful? Which patches to cover to find out, and what the answers say. Arrays only.

Deletion and insertion: Petsiuk et al. 2018, RISE (arXiv 1806.07421), section 4.1.

Deletion covers patches with a fill, the most important first, and follows the score of a label. If the map is right,
the score falls fast. Insertion uncovers the patches of the covered image in the same order, and the score rises fast.

Insertion is the deletion of the reversed order, read from its end, so only deletions are computed. A random order is
the yardstick of both, because its reverse is just as random. The yardstick of some patches is random sets of as many.
"""

import hashlib
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

Numbers = npt.NDArray[np.float64]


class FaithfulnessCurve(BaseModel):
    """The score of a label while patches are covered (deletion) or uncovered (insertion), most important first."""

    fractions: list[float]  # of the patches, 0 to 1
    scores: list[float]
    random: list[float]  # mean over random orders
    area: float  # under the scores
    random_area: float  # mean of random_areas
    random_areas: list[float]  # one for each random order
    gain: float  # how much better than random_area: below it for deletion, above it for insertion

    @classmethod
    def of(
        cls, fractions: Numbers, *, scores: Numbers, random: Numbers, areas: list[float], better: Literal[-1, 1]
    ) -> Self:
        """The curve of `fractions` and `scores` (points,), and `random` scores (orders, points). `areas` are of the
        scores and then of each random order; `better` is the direction of an area.
        """
        area, *random_areas = areas
        random_area = sum(random_areas) / len(random_areas)
        return cls(
            fractions=fractions.tolist(),
            scores=scores.tolist(),
            random=random.mean(axis=0).tolist(),
            area=area,
            random_area=random_area,
            random_areas=random_areas,
            gain=better * (area - random_area),
        )


@dataclass(frozen=True, kw_only=True)
class Faithfulness:
    """Which patches to cover for each point of each curve. Equal images are listed once."""

    covered: npt.NDArray[np.bool_]  # (images, patches): True under the fill; the untouched image comes first
    counts: npt.NDArray[np.intp]  # (points,): patches covered at each point of a deletion, from none to all
    image_of: npt.NDArray[np.intp]  # (orders, points): the map's order, its reverse, then the random orders

    @classmethod
    def of(cls, values: npt.NDArray[np.float32], *, steps: int, random_orders: int, seed: bytes) -> Self:
        """Of a map (rows, columns), in `steps` equal steps, fewer where there are fewer patches.

        The largest value comes first, equal values row by row. The same seed gives the same random orders.
        """
        patches = values.size
        order, rng = ranked(values), seeded(seed)
        orders = np.stack([order, order[::-1], *(rng.permutation(patches) for _ in range(random_orders))])
        counts = np.unique(np.rint(np.linspace(0, patches, steps + 1)).astype(np.intp))
        place = np.argsort(orders, axis=1)  # (orders, patches): when each patch is covered
        covered = place[:, None, :] < counts[:, None]  # (orders, points, patches)
        distinct, image_of = np.unique(covered.reshape(-1, patches), axis=0, return_inverse=True)
        return cls(covered=distinct, counts=counts, image_of=image_of.reshape(len(orders), len(counts)))

    @property
    def fractions(self) -> Numbers:
        """Of the patches (points,), from 0 to 1, that are covered."""
        return np.asarray(self.counts / self.counts[-1], np.float64)

    def areas(self, scores: Numbers) -> Numbers:
        """(orders,), from the label's scores (images,): deletion, insertion, and the random orders, whose deletion and
        insertion are the same. An area, by trapezoids, is the mean score along the way.
        """
        return np.asarray(np.trapezoid(scores[self.image_of], self.fractions, axis=1), np.float64)

    def curves(self, scores: Numbers) -> tuple[FaithfulnessCurve, FaithfulnessCurve]:
        """Deletion and insertion, from the label's scores (images,)."""
        covered, of_orders = self.fractions, scores[self.image_of]
        curve, random = FaithfulnessCurve.of, of_orders[2:]
        deletion, insertion, *others = self.areas(scores).tolist()
        return (
            curve(covered, scores=of_orders[0], random=random, areas=[deletion, *others], better=-1),
            curve(
                1 - covered[::-1],
                scores=of_orders[1, ::-1],
                random=random[:, ::-1],
                areas=[insertion, *others],
                better=1,
            ),
        )


def chance(random_orders: int) -> float:
    """How often a random map beats so many random orders in both tests.

    Its two areas are as far above and below the orders' areas at once if they mirror each other, 1 / 2(n + 1), as they
    are seldom if they have nothing in common, 1 / (n + 1)(n + 2). This is the middle of both; what was measured is at
    most as much (`python -m lab.benchmarks verify_chance`).
    """
    n = random_orders
    return (1 / (2 * (n + 1)) + 1 / ((n + 1) * (n + 2))) / 2


def top(values: npt.NDArray[np.float32], share: float) -> npt.NDArray[np.bool_]:
    """The patches (patches,) with the largest values of a map (rows, columns): `share` of them, and at least one."""
    highest = np.zeros(values.size, bool)
    highest[ranked(values)[: max(round(share * values.size), 1)]] = True
    return highest


def beside_random_sets(patches: npt.NDArray[np.bool_], count: int, *, seed: bytes) -> npt.NDArray[np.bool_]:
    """What to cover (2 + count, patches): nothing, `patches` (patches,), and random sets of as many. The same seed
    gives the same sets.
    """
    sets = seeded(seed).permuted(np.tile(patches, (count, 1)), axis=1)
    return np.vstack([np.zeros_like(patches), patches, sets])


def share_as_large(effect: float, of_random: Numbers) -> float:
    """Share of the effects of random sets that are at least as large, in either direction."""
    return float(np.mean(np.abs(of_random) >= abs(effect)))


def ranked(values: npt.NDArray[np.float32]) -> npt.NDArray[np.intp]:
    """Patches (patches,) of a map (rows, columns), the largest value first, equal values row by row."""
    return np.argsort(-values.ravel(), kind="stable")


def seeded(seed: bytes) -> np.random.Generator:
    """Random choices that are the same for the same bytes."""
    return np.random.default_rng(list(hashlib.sha256(seed).digest()))
