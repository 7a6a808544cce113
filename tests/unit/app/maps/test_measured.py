"""app/maps/measured.py on numbers that are made, so that the true effect of every patch is known."""

import numpy as np
import pytest

from app.inference.scoring import Scoring, scores
from app.maps.measured import Masks, Measured, log_odds, measure

GRID = (8, 6)
PLANTED = np.zeros(GRID)
PLANTED[2:4, 1:4], PLANTED[6, 4] = 1.0, -0.7


def measured(passes: int, *, noise: float = 0.0, effects: np.ndarray = PLANTED) -> Measured:
    """Of an answer that is linear in patches, with another offset under each fill."""
    masks = Masks.of(effects.shape, passes)
    offsets = np.where(np.array(masks.fills) == "blur", 5.0, -3.0)
    errors = noise * np.random.default_rng(1).normal(size=passes)
    return measure(offsets - masks.covered @ effects.ravel() + errors, masks)


def test_what_is_linear_in_patches_is_found():
    assert measured(256).values == pytest.approx(PLANTED, abs=0.05)


@pytest.mark.parametrize("passes", [16, 64, 256])
def test_nine_of_ten_effects_are_within_two_spreads(passes):
    smooth = np.add.outer(np.sin(np.arange(12) / 2), np.cos(np.arange(12) / 3))
    found = measured(passes, noise=1.0, effects=smooth)
    assert (np.abs(found.values - smooth) <= 2 * found.spread).mean() >= 0.9


def test_more_passes_leave_less_spread():
    few, many = (measured(passes, noise=0.5).spread.mean() for passes in (16, 256))
    assert many < few / 1.5


def test_an_answer_that_never_changes_has_a_flat_map():
    for part in measured(16, effects=np.zeros(GRID)):
        assert part == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("grid", [(8, 6), (1, 5), (16, 16), (37, 37)])
def test_masks_come_with_their_complement_and_begin_alike(grid):
    masks = Masks.of(grid, 16)
    assert (masks.covered[::2] ^ masks.covered[1::2]).all()
    assert masks.fills == ("mean", "mean", "blur", "blur") * 4
    assert (Masks.of(grid, 64).covered[:16] == masks.covered).all()


def test_masks_are_smooth():
    """A patch lies beside one like it more often than by chance, which is a half."""
    masks = Masks.of((16, 16), 64).covered.reshape(-1, 16, 16)
    assert (masks[:, 1:] == masks[:, :-1]).mean() > 0.75


def test_log_odds():
    logits = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    for kind in ("softmax", "sigmoid"):
        p = scores(logits[0], kind, 2.0)[1]
        odds = log_odds(logits, Scoring(labels=tuple("abc"), kind=kind, temperature=2.0), 1)
        assert odds[0] == pytest.approx(np.log(p / (1 - p)))
    softmax = Scoring(labels=tuple("abc"), kind="softmax")
    assert log_odds(logits, softmax, 1, 2) == pytest.approx(logits[:, 1] - logits[:, 2])
