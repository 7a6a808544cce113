"""tests/benchmarks/raw.py."""

import threading

import pytest

from app.bundle import CLASSIFY_GRAPH, load_bundle
from app.settings import DEMO_BUNDLE
from tests.benchmarks import raw
from tests.benchmarks.raw import Arrangement, RawLoop, arrangements, of_bundle, of_onnx_runtime

TWO = Arrangement(runs=2, threads=1, spinning=False, batch=4)


def test_every_arrangement_has_every_batch():
    found = arrangements(2, spinning=True)
    assert len(set(found)) == len(found)
    ways = {(one.runs, one.threads, one.spinning) for one in found}
    assert ways == {(1, 2, True), (1, 2, False), (2, 2, False), (2, 1, False)}
    assert len(found) == len(ways) * len(raw.BATCHES)
    assert set(arrangements(2, spinning=False)) == {one for one in found if not one.spinning}


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


@pytest.mark.parametrize(
    "loop",
    [
        of_bundle(load_bundle(DEMO_BUNDLE), "classify"),
        of_bundle(load_bundle(DEMO_BUNDLE), "explain"),
        of_onnx_runtime(DEMO_BUNDLE / CLASSIFY_GRAPH),
    ],
    ids=["labels", "maps", "ONNX Runtime"],
)
def test_models_have_a_rate(loop):
    assert loop.rate(TWO, 0.0) > 1
