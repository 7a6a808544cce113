"""model/fit/optimiser.py: the learning rate."""

import pytest

from model.fit.optimiser import cosine, linear


def test_cosine_rises_to_1_and_falls_to_almost_0():
    factors = [cosine(step, 100, warm_up=10) for step in range(100)]
    assert [factors[step] for step in (0, 4, 9, 10, 55)] == pytest.approx([0.1, 0.5, 1, 1, 0.5])
    assert factors[10:] == sorted(factors[10:], reverse=True)
    assert 0 < factors[99] < 0.001
    assert cosine(0, 1, warm_up=1) == 1  # a run that is all warm-up


def test_linear_falls_from_the_first_step():
    assert [linear(step, 100, warm_up=10) for step in (0, 9, 50, 99)] == pytest.approx([0.1, 0.91, 0.5, 0.01])
    assert linear(0, 4, warm_up=0) == 1
