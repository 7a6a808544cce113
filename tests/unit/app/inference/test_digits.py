"""How many digits of a number JSON has."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.digits import digits, listed


@given(st.floats(2.0**-99, 2.0**20, width=32))
def test_a_score_is_written_in_seven_digits_and_changes_by_less_than_a_millionth(score):
    assert digits(score) == pytest.approx(score, rel=1e-6, abs=0)
    assert len(repr(digits(score)).split("e")[0].replace(".", "").strip("0")) <= 7


@given(st.lists(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=2)))
def test_arrays_in_json_are_those_of_float32(rows):
    values = np.array(rows, np.float32)
    assert np.array_equal(np.array(json.loads(json.dumps(listed(values))), np.float32), values)


def test_arrays_in_json_have_nine_digits():
    assert json.dumps(listed(np.float32([1 / 3, 1e-7, 0]))) == "[0.333333343, 1.00000001e-07, 0.0]"
