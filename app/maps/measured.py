"""A map that is measured: what is followed while parts of an image are covered, fitted over the grid. Arrays only.

Masks are random and smooth, as in RISE (Petsiuk et al. 2018, arXiv 1806.07421), each with its complement. Half of these
pairs lie under the mean colour and half under a blur, so that the map is not that of one fill. What is followed is
taken for a sum over the patches shown. Its prior is a Gaussian process over the grid: patches side by side are alike,
as far as the numbers do not say otherwise (Rasmussen & Williams 2006, sections 2.2 and 2.7). Over how many patches, and
how much of the numbers is no such sum, is uncertain too: maps are averaged, weighted by their marginal likelihood.

In shapes: n passes, P patches, R rows and C columns of the grid.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from app.inference.scoring import Scoring

Numbers = npt.NDArray[np.floating]
MaskFill = Literal["mean", "blur"]

PASSES, LEAST_PASSES, MOST_PASSES = 64, 16, 256
SEED = 0  # of all masks, so that an image has the same numbers every time
SHARES = (0.3, 0.7)  # of the patches in a mask: with one share alone, an offset could be that of all patches
CELL = 3  # patches between the random numbers of a mask
LEAST_CELLS = 4  # along a side of the grid
LENGTHS = (0.8, 1.6)  # patches over which effects are alike
NOISES = (0.01, 0.1, 1.0)  # variance of the noise, as a share of the variance of the sum over patches
LEAST_NOISE = 1e-9  # where every pass has the same answer


@dataclass(frozen=True, kw_only=True)
class Masks:
    """What to cover in each pass, and with what."""

    covered: npt.NDArray[np.bool_]  # (n, P): some patches, then all others
    fills: tuple[MaskFill, ...]  # (n,)
    grid: tuple[int, int]  # R, C

    @classmethod
    def of(cls, grid: tuple[int, int], passes: int) -> Self:
        """An even number of them. Those of fewer passes are the first ones of more."""
        rng = np.random.default_rng(SEED)
        pairs = ((mask, ~mask) for mask in (_smooth(grid, rng) for _ in range(passes // 2)))
        covered = np.array([half.ravel() for pair in pairs for half in pair])
        fills: tuple[MaskFill, ...] = ("mean", "mean", "blur", "blur")
        return cls(covered=covered, fills=(fills * passes)[:passes], grid=grid)


class Measured(NamedTuple):
    """By how much each patch raises what was followed, and how certain that is: the mean and the standard deviation of
    each patch's effect, given the numbers. Both (R, C), in the unit of what was followed.
    """

    values: npt.NDArray[np.float32]
    spread: npt.NDArray[np.float32]


def measure(followed: Numbers, masks: Masks) -> Measured:
    """The map of what was `followed` (n,) while `masks` covered the image."""
    fits = [_fit(followed, masks, length, noise) for length in LENGTHS for noise in NOISES]
    likelihoods, values, spreads = (np.array(part) for part in zip(*fits, strict=True))
    weights = np.exp(likelihoods - likelihoods.max())
    weights /= weights.sum()
    mean = weights @ values
    variance = weights @ (spreads**2 + (values - mean) ** 2)
    return Measured(*(part.reshape(masks.grid).astype(np.float32) for part in (mean, np.sqrt(variance))))


def log_odds(logits: Numbers, scoring: Scoring, label: int, against: int | None = None) -> Numbers:
    """What is followed: (n,) from `logits` (n, classes), divided by the temperature of the scores. With `against` it is
    the difference of two logits; else the log-odds of the label's score, which under sigmoid are its logit.
    """
    z = logits.astype(np.float64) / scoring.temperature
    if against is not None:
        return z[:, label] - z[:, against]
    if scoring.kind == "sigmoid":
        return z[:, label]
    others = np.delete(z, label, axis=1)
    return np.asarray(z[:, label] - np.logaddexp.reduce(others, axis=1))


class _Fit(NamedTuple):
    likelihood: float  # its logarithm, up to a constant
    values: npt.NDArray[np.float64]  # (P,)
    spread: npt.NDArray[np.float64]  # (P,)


def _fit(followed: Numbers, masks: Masks, length: float, noise: float) -> _Fit:
    """followed = an offset for each fill + shown · effects + noise."""
    passes = len(followed)
    shown = 0.5 - masks.covered  # so that offsets are apart from effects
    down, across = (_alike(side, length) for side in masks.grid)
    of_effects = (down @ shown.reshape(passes, *masks.grid) @ across).reshape(passes, -1)  # covariance with effects
    of_sums = of_effects @ shown.T
    noises = (noise + LEAST_NOISE) * np.trace(of_sums) / passes * np.eye(passes)
    root = np.linalg.cholesky(of_sums + noises)
    offsets = np.array([[fill == one for one in ("mean", "blur")] for fill in masks.fills], np.float64)
    white_offsets, white_followed, white_effects = (
        np.linalg.solve(root, part) for part in (offsets, followed.astype(np.float64), of_effects)
    )
    sizes = np.linalg.lstsq(white_offsets, white_followed, rcond=None)[0]
    left = white_followed - white_offsets @ sizes
    free = passes - white_offsets.shape[1]
    squares = left @ left
    of_offsets = white_offsets.T @ white_effects
    of_both = white_offsets.T @ white_offsets
    unknown = np.linalg.solve(of_both, of_offsets)
    known = (white_effects**2).sum(axis=0) - (of_offsets * unknown).sum(axis=0)
    ignorance = free * np.log(max(squares, np.finfo(np.float64).tiny)) + np.linalg.slogdet(of_both)[1]
    return _Fit(
        likelihood=-ignorance / 2 - np.log(np.diag(root)).sum(),
        values=white_effects.T @ left,
        spread=np.sqrt(squares / (free - 2) * (1 - known).clip(0)),  # of Student's t: the variance is estimated
    )


def _alike(side: int, length: float) -> npt.NDArray[np.float64]:
    """(side, side), 1 on the diagonal: correlation of effects along one side of the grid."""
    places = np.arange(side)
    correlation: npt.NDArray[np.float64] = np.exp(-(((places[:, None] - places) / length) ** 2) / 2)
    return correlation


def _smooth(grid: tuple[int, int], rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Where (R, C) what lies between random numbers is largest. They stand CELL patches apart, at a random shift."""
    cells = [max(LEAST_CELLS, side // CELL) for side in grid]
    field = rng.normal(size=[count + 2 for count in cells])
    for side, count in zip(grid, cells, strict=True):
        places = np.arange(side) * count / side + rng.uniform()
        below = places.astype(np.intp)
        part = (places - below)[:, None]
        field = ((1 - part) * field[below] + part * field[below + 1]).T  # the other axis is next
    largest = np.zeros(field.size, bool)
    count = round(rng.uniform(*SHARES) * field.size)
    largest[np.argsort(-field, axis=None, kind="stable")[:count]] = True
    return largest.reshape(grid)
