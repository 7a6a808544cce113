import numpy as np
import pytest

from app.maps.distance import RunningDistance


def test_the_mean_is_of_all_that_was_added_and_there_is_none_before():
    added = np.random.default_rng(0).random((7, 2, 3)).astype(np.float32)
    running = RunningDistance(layers=2, heads=3)
    assert running.mean() is None
    for distance in added:
        running.add(distance)
    mean = running.mean()
    assert mean.pictures == 7
    assert np.array(mean.distance) == pytest.approx(added.mean(axis=0, dtype=np.float64), rel=1e-12)


def test_many_images_lose_no_digits():
    """A sum in float32 would stand still at 2 ** 24 times the distance."""
    running = RunningDistance(layers=1, heads=1)
    running.add(np.full((1, 1), 2**25, np.float32))
    for _ in range(10):
        running.add(np.ones((1, 1), np.float32))
    assert running.mean().distance == [[(2**25 + 10) / 11]]
