"""model/fit/schedule.py."""

import pytest

from model.fit.schedule import cosine, linear


def test_cosine_rises_to_1_and_falls_to_almost_0():
    factor = cosine(100, warm_up=10)
    assert [factor(step) for step in (0, 4, 9, 10)] == pytest.approx([0.1, 0.5, 1, 1])
    assert factor(55) == pytest.approx(0.5)
    assert 0 < factor(99) < 0.001
    assert all(factor(step) > factor(step + 1) for step in range(10, 99))
    assert cosine(1, warm_up=1)(0) == 1  # a run that is all warm-up


def test_linear_falls_from_the_first_step():
    factor = linear(100, warm_up=10)
    assert [factor(step) for step in (0, 9, 50, 99)] == pytest.approx([0.1, 0.91, 0.5, 0.01])
    assert linear(4, warm_up=0)(0) == 1
