import numpy as np
import pytest

from app.maps.heads import entropy, head_report
from tests.support.records import make_maps


def test_entropy_is_in_bits_whatever_the_sum_of_a_row():
    rows = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.25, 0.25, 0.25], [0.5, 0.25, 0.125, 0.125]], np.float32)
    for sum_of_row in (1, 1.01):
        assert entropy(sum_of_row * rows) == pytest.approx([0, 1, 2, 1.75])


def test_shares_of_the_logit_of_the_class_asked_for():
    maps = make_maps(
        attention=np.full((2, 1, 4), 0.25, np.float32),
        classes=np.array([4, 2]),
        logits=np.array([9, 9, -2, 9, 4], np.float32),
        evidence_heads=np.array([[[1], [2]], [[3], [-1]]], np.float32),
        distance=np.array([[1.5], [2.5]], np.float32),
    )
    first, second = head_report(maps, 0), head_report(maps, 1)
    assert first["entropy"].tolist() == [[2], [2]]
    assert first["distance"].tolist() == [[1.5], [2.5]]
    assert (first["contribution"].tolist(), first["share"].tolist()) == ([[1], [2]], [[0.25], [0.5]])
    assert (second["contribution"].tolist(), second["share"].tolist()) == ([[3], [-1]], [[-1.5], [0.5]])
    of_zero = make_maps(logits=np.zeros(1, np.float32), evidence_heads=np.ones((1, 1, 1), np.float32))
    assert not np.isfinite(head_report(of_zero, 0)["share"]).any()
