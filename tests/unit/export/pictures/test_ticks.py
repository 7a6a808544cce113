import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from export.pictures.ticks import nice_ticks


@given(st.floats(1e-6, 1e6))
def test_ticks_cover_the_largest_value_and_are_few(largest):
    ticks = nice_ticks(largest)
    assert ticks[0] == 0
    assert 3 <= len(ticks) <= 9
    assert ticks[-2] < largest * (1 + 1e-6)
    assert ticks[-1] >= largest * (1 - 1e-6)
    assert np.diff(ticks) == pytest.approx(ticks[1])
