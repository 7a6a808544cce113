"""app/maps/faithfulness.py on a model that adds up the patches it sees: every curve is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.maps.faithfulness import Trial

PATCH = 2
VALUES = np.arange(15, 0, -1, dtype=np.float32).reshape(3, 5)  # the first patch matters most


def trial(values=VALUES, *, steps=15, random_orders=3, seed=b"id") -> Trial:
    return Trial.of(values, steps=steps, random_orders=random_orders, seed=seed)


def linear_scores(trial: Trial, weights: np.ndarray) -> np.ndarray:
    """A score that is the sum of the weights of the uncovered patches."""
    return (~trial.covered) @ weights.ravel().astype(np.float64)


def test_the_curves_of_a_linear_model_are_known():
    tried = trial()
    deletion, insertion = tried.curves(linear_scores(tried, VALUES))
    weights = np.sort(VALUES.ravel())[::-1].astype(np.float64)
    assert deletion.fractions == pytest.approx(np.arange(16) / 15)
    assert deletion.scores == pytest.approx(120 - np.cumsum([0, *weights]))
    assert insertion.scores == pytest.approx(np.cumsum([0, *weights]))
    assert insertion.fractions == pytest.approx(np.arange(16) / 15)
    assert deletion.area == pytest.approx(120 - insertion.area)


def test_the_right_order_beats_random_which_beats_the_reverse():
    tried, reverse = trial(random_orders=8), trial(-VALUES)
    deletion, insertion = tried.curves(linear_scores(tried, VALUES))
    worst_deletion, worst_insertion = reverse.curves(linear_scores(reverse, VALUES))
    assert deletion.area < min(deletion.random_areas)
    assert max(deletion.random_areas) < worst_deletion.area
    assert insertion.area > max(insertion.random_areas)
    assert min(insertion.random_areas) > worst_insertion.area


def test_one_random_order_serves_both_curves():
    tried = trial()
    deletion, insertion = tried.curves(linear_scores(tried, VALUES))
    assert insertion.random == deletion.random[::-1]
    assert insertion.random_areas == pytest.approx(deletion.random_areas)


def test_signed_values_go_from_the_largest_to_the_smallest_and_equal_ones_row_by_row():
    signed = trial(np.array([[0.0, -3.0, 2.0]], np.float32), steps=3, random_orders=1)
    equal = trial(np.zeros((2, 2), np.float32), steps=4, random_orders=1)
    assert signed.covered[signed.image_of[0]].astype(int).tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1]]
    assert (equal.covered[equal.image_of[0]] == np.tri(5, 4, -1)).all()


@given(shape=st.tuples(st.integers(1, 6), st.integers(1, 6)), steps=st.integers(4, 64), random_orders=st.integers(1, 8))
def test_every_image_is_there_once_and_every_curve_goes_from_all_to_nothing(shape, steps, random_orders):
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    tried = trial(values, steps=steps, random_orders=random_orders)
    assert len(np.unique(tried.covered, axis=0)) == len(tried.covered)
    assert not tried.covered[0].any()
    assert len(tried.counts) == min(steps, values.size) + 1
    assert (tried.covered[tried.image_of].sum(axis=2) == tried.counts).all()
    deletion, insertion = tried.curves(tried.covered.mean(axis=1))
    for curve in (deletion, insertion):
        assert (curve.fractions[0], curve.fractions[-1]) == (0, 1)
        assert (np.diff(curve.fractions) > 0).all()


def test_the_seed_decides_the_random_orders_and_nothing_else():
    first, again, other = trial(seed=b"a"), trial(seed=b"a"), trial(seed=b"b")
    for name in ("covered", "counts", "image_of"):
        assert (getattr(first, name) == getattr(again, name)).all()
    assert (first.covered[first.image_of[:2]] == other.covered[other.image_of[:2]]).all()
    assert (first.covered[first.image_of[2:]] != other.covered[other.image_of[2:]]).any()
