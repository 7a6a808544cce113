"""tests/benchmarks/raw.py."""

import threading

from tests.benchmarks import raw
from tests.benchmarks.raw import Arrangement, RawLoop, arrangements


def test_every_arrangement_has_every_batch():
    found = arrangements(2)
    assert len(set(found)) == len(found)
    ways = {(one.runs, one.threads, one.spinning) for one in found}
    assert ways == {(1, 2, True), (1, 2, False), (2, 2, False), (2, 1, False)}
    assert len(found) == len(ways) * len(raw.BATCHES)


def test_the_rate_is_that_of_all_runs_at_a_time(monkeypatch, tmp_path):
    """Each run waits for the other: two go on at a time, or none ends."""
    both = threading.Barrier(2)
    monkeypatch.setattr(RawLoop, "_session", lambda *_, **__: None)
    runs = iter([None])  # the first is not measured

    def run():
        if next(runs, both) is both:
            both.wait(10)

    monkeypatch.setattr(raw, "runner", lambda session, batch: run)
    assert RawLoop(tmp_path).rate(Arrangement(runs=2, threads=1, spinning=False, batch=4), 0.0) > 0
