"""tests/benchmarks/raw.py."""

import threading

from tests.benchmarks.raw import Arrangement, RawLoop

TWO = Arrangement(runs=2, threads=1, spinning=False, batch=4)


def test_the_rate_is_that_of_all_runs_at_a_time():
    """Each run waits for the other: two go on at a time, or none ends."""
    both, opened = threading.Barrier(2), []

    def open_(threads, spinning):
        opened.append((threads, spinning))
        first = iter([True])  # it is not measured
        return lambda batch: None if next(first, False) else both.wait(10)

    loop = RawLoop(open_, spinning=False)
    assert loop.rate(TWO, 0.0) > 0
    assert opened == [(1, False), (1, False)]
