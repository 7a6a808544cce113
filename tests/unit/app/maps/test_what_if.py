"""app/maps/what_if.py on a model whose logit is the sum of what it sees: every effect is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.maps.what_if import WhatIf, share_as_large, top

VALUES = np.array([[3, 1, 4, 1], [5, 9, 2, 6]], np.float32)


@pytest.mark.parametrize(
    ("share", "expected"), [(0.001, [5]), (0.25, [5, 7]), (0.3, [5, 7]), (0.9, [0, 1, 2, 4, 5, 6, 7])]
)
def test_the_top_of_a_map(share, expected):
    """At least one patch, and of equal values the first."""
    assert np.flatnonzero(top(VALUES, share)).tolist() == expected


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 5))
def test_random_sets_are_of_the_same_size_and_the_same_again(patches, random_sets):
    first, again = (WhatIf.of(np.array(patches), random_sets=random_sets, seed=b"id").covered for _ in range(2))
    assert (first == again).all()
    assert not first[0].any()
    assert (first[1] == patches).all()
    assert (first[2:].sum(axis=1) == sum(patches)).all()
    assert len(first) == 2 + random_sets


def test_the_effects_of_a_linear_model_are_the_sums_of_what_is_covered():
    patches = top(VALUES, 0.25)
    planned = WhatIf.of(patches, random_sets=50, seed=b"id")
    effects = planned.covered[1:] @ VALUES.ravel().astype(np.float64)
    assert effects[0] == 15
    assert len(np.unique(effects[1:])) > 10  # the sets differ
    assert share_as_large(effects[0], effects[1:]) == pytest.approx(np.mean(effects[1:] == 15))
    # Both directions count.
    assert share_as_large(1.0, np.array([-2, -1, 0.5, 1.1])) == 0.75
