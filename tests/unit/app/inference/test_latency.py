"""app/inference/latency.py: what a run is expected to take, and which batch size pays."""

import pytest

from app.inference.latency import Latency


def measured(seconds: dict[int, float]) -> Latency:
    latency = Latency()
    for size, value in seconds.items():
        latency.add(size, 99.0)  # the first run of a size does not count
        latency.add(size, value)
    return latency


@pytest.mark.parametrize(
    ("seconds", "best"),
    [
        ({1: 1.0}, 1),
        ({1: 1.0, 2: 1.92}, 1),  # less than 5 %
        ({8: 5.9, 4: 2.9, 2: 1.5, 1: 1.0}, 2),  # 8 is the best, 2 within 5 % of it
        ({1: 1.0, 2: 1.1, 4: 1.3, 8: 1.7}, 8),  # as on a GPU
        ({1: 1.0, 2: 1.5, 4: 9.0}, 2),  # larger ones can be worse
    ],
)
def test_the_best_is_the_smallest_within_five_percent(seconds, best):
    assert measured(seconds).best() == best


def test_the_mean_follows_slowly():
    latency = measured({1: 1.0})
    latency.add(1, 2.0)
    assert latency.seconds == {1: pytest.approx(1.1)}
    for _ in range(100):
        latency.add(1, 2.0)
    assert latency.seconds == {1: pytest.approx(2.0, abs=1e-3)}


def test_a_run_during_a_pause_of_the_machine_counts_as_twice_the_mean():
    """Else no image would be run any more whose deadline is sooner than the next run is expected to end."""
    latency = measured({1: 1.0})
    latency.add(1, 36_000.0)
    assert latency.expected(1) == pytest.approx(1.1)
    latency.add(2, 1.5)
    latency.add(2, 36_000.0)
    assert latency.expected(2) == 1.5


@pytest.mark.parametrize(("batch", "seconds"), [(1, 1.0), (2, 1.5), (3, 2.5), (4, 2.5), (8, 5.0)])
def test_a_run_is_expected_to_take_what_the_next_size_took(batch, seconds):
    assert measured({1: 1.0, 2: 1.5, 4: 2.5}).expected(batch) == seconds
    assert measured({}).expected(batch) == 0
