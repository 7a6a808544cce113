"""app/maps/faithfulness.py on a model that adds up the patches it sees: every curve and effect is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.maps.faithfulness import Faithfulness, beside_random_sets, chance, share_as_large, top

VALUES = np.arange(15, 0, -1, dtype=np.float32).reshape(3, 5)  # the first patch matters most


def judge(values=VALUES, *, steps=15, random_orders=3, seed=b"id") -> Faithfulness:
    return Faithfulness.of(values, steps=steps, random_orders=random_orders, seed=seed)


def linear_scores(judged: Faithfulness, weights: np.ndarray) -> np.ndarray:
    """A score that is the sum of the weights of the uncovered patches."""
    return (~judged.covered) @ weights.ravel().astype(np.float64)


def test_the_curves_of_a_linear_model_are_known():
    judged = judge()
    deletion, insertion = judged.curves(linear_scores(judged, VALUES))
    weights = np.sort(VALUES.ravel())[::-1].astype(np.float64)
    assert deletion.fractions == pytest.approx(np.arange(16) / 15)
    assert deletion.scores == pytest.approx(120 - np.cumsum([0, *weights]))
    assert insertion.scores == pytest.approx(np.cumsum([0, *weights]))
    assert insertion.fractions == pytest.approx(np.arange(16) / 15)
    assert deletion.area == pytest.approx(120 - insertion.area)


def test_one_random_order_serves_both_curves():
    judged = judge()
    deletion, insertion = judged.curves(linear_scores(judged, VALUES))
    assert insertion.random == deletion.random[::-1]
    assert insertion.random_areas == pytest.approx(deletion.random_areas)


def test_signed_values_go_from_the_largest_to_the_smallest_and_equal_ones_row_by_row():
    signed = judge(np.array([[0.0, -3.0, 2.0]], np.float32), steps=3, random_orders=1)
    equal = judge(np.zeros((2, 2), np.float32), steps=4, random_orders=1)
    assert signed.covered[signed.image_of[0]].astype(int).tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1]]
    assert (equal.covered[equal.image_of[0]] == np.tri(5, 4, -1)).all()


@given(shape=st.tuples(st.integers(1, 6), st.integers(1, 6)), steps=st.integers(4, 64), random_orders=st.integers(1, 8))
def test_every_image_is_there_once_and_every_curve_goes_from_all_to_nothing(shape, steps, random_orders):
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    judged = judge(values, steps=steps, random_orders=random_orders)
    assert len(np.unique(judged.covered, axis=0)) == len(judged.covered)
    assert not judged.covered[0].any()
    assert len(judged.counts) == min(steps, values.size) + 1
    assert (judged.covered[judged.image_of].sum(axis=2) == judged.counts).all()
    deletion, insertion = judged.curves(judged.covered.mean(axis=1))
    for curve in (deletion, insertion):
        assert (curve.fractions[0], curve.fractions[-1]) == (0, 1)
        assert (np.diff(curve.fractions) > 0).all()


def test_the_seed_decides_the_random_orders_and_nothing_else():
    first, again, other = judge(seed=b"a"), judge(seed=b"a"), judge(seed=b"b")
    for name in ("covered", "counts", "image_of"):
        assert (getattr(first, name) == getattr(again, name)).all()
    assert (first.covered[first.image_of[:2]] == other.covered[other.image_of[:2]]).all()
    assert (first.covered[first.image_of[2:]] != other.covered[other.image_of[2:]]).any()


DIGITS = np.array([[3, 1, 4, 1], [5, 9, 2, 6]], np.float32)


@pytest.mark.parametrize(
    ("share", "expected"), [(0.001, [5]), (0.25, [5, 7]), (0.3, [5, 7]), (0.9, [0, 1, 2, 4, 5, 6, 7])]
)
def test_the_top_of_a_map(share, expected):
    """At least one patch, and of equal values the first."""
    assert np.flatnonzero(top(DIGITS, share)).tolist() == expected


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 5))
def test_random_sets_are_of_the_same_size_and_the_same_again(patches, random_sets):
    first, again = (beside_random_sets(np.array(patches), random_sets, seed=b"id") for _ in range(2))
    assert (first == again).all()
    assert not first[0].any()
    assert (first[1] == patches).all()
    assert (first[2:].sum(axis=1) == sum(patches)).all()
    assert len(first) == 2 + random_sets


def test_the_effects_of_a_linear_model_are_the_sums_of_what_is_covered():
    patches = top(DIGITS, 0.25)
    covered = beside_random_sets(patches, 50, seed=b"id")
    effects = covered[1:] @ DIGITS.ravel().astype(np.float64)
    assert effects[0] == 15
    assert len(np.unique(effects[1:])) > 10  # the sets differ
    assert share_as_large(effects[0], effects[1:]) == pytest.approx(np.mean(effects[1:] == 15))
    # Both directions count.
    assert share_as_large(1.0, np.array([-2, -1, 0.5, 1.1])) == 0.75


def test_chance_of_a_random_map_whose_areas_are_halfway_between_mirrored_and_apart():
    """Its deletion and its insertion area are as likely to mirror each other as to have nothing in common."""
    rng, maps, orders = np.random.default_rng(0), 40_000, 8
    areas = rng.random((maps, orders))
    deletion, insertion = rng.random((2, maps))
    insertion[::2] = 1 - deletion[::2]
    beaten = (deletion < areas.min(1)) & (insertion > areas.max(1))
    assert beaten.mean() == pytest.approx(chance(orders), rel=0.1)
