"""app/inference/gears.py: which gear a run takes, and with how many images."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.contract import Plan
from app.inference.gears import Gears, choose_lanes, threads_of


def plan(gears: Gears, waiting: int, running: list[Plan], best: int = 4) -> Plan | None:
    return gears.plan(waiting=waiting, running=running, best=lambda gear: best)


TWO = Gears(cores=2, lanes=2)
SIXTEEN = Gears(cores=16, lanes=16)


def wide(*images: int) -> list[Plan]:
    return [Plan("wide", number) for number in images]


def narrow(*images: int) -> list[Plan]:
    return [Plan("narrow", number) for number in images]


@pytest.mark.parametrize(
    ("gears", "waiting", "running", "planned"),
    [
        (TWO, 1, [], Plan("wide", 1)),
        (TWO, 1, wide(1), Plan("wide", 1)),
        (TWO, 2, [], Plan("wide", 2)),
        (TWO, 3, [], Plan("narrow", 2)),
        (TWO, 2, wide(1), Plan("narrow", 1)),  # the other is for the lane that is in use
        (TWO, 3, narrow(1), Plan("narrow", 2)),
        (TWO, 6, narrow(4), Plan("narrow", 3)),
        (TWO, 14, narrow(1), Plan("narrow", 4)),
        (TWO, 1, narrow(1), Plan("narrow", 1)),
        (TWO, 14, narrow(1, 1), None),
        (SIXTEEN, 1, [], Plan("wide", 1)),
        (SIXTEEN, 16, [], Plan("wide", 4)),
        (SIXTEEN, 9, wide(4), Plan("wide", 4)),
        (SIXTEEN, 5, wide(4, 4), None),  # a third on all cores would only take them from the first two
        (SIXTEEN, 9, wide(4, 4), Plan("narrow", 1)),
        (SIXTEEN, 40, [], Plan("narrow", 3)),
        (SIXTEEN, 1, narrow(*[1] * 15), Plan("narrow", 1)),
        (SIXTEEN, 1, narrow(*[1] * 8), Plan("narrow", 1)),
        (SIXTEEN, 1, narrow(*[1] * 7), Plan("wide", 1)),  # the load has fallen
    ],
)
def test_few_images_run_on_all_cores_and_many_in_lanes(gears, waiting, running, planned):
    assert plan(gears, waiting, running) == planned


def test_a_model_that_one_thread_answers_sooner_stays_in_lanes():
    def small(waiting: int, running: list[Plan]) -> Plan | None:
        return TWO.plan(waiting=waiting, running=running, best=lambda gear: 4, alone="narrow")

    assert small(1, []) == Plan("narrow", 1)
    assert small(2, []) == Plan("narrow", 1)
    assert small(1, narrow(1)) == Plan("narrow", 1)
    assert small(1, narrow(1, 1)) is None
    assert Gears(cores=1).plan(waiting=1, running=[], best=lambda gear: 4, alone="wide") == Plan("wide", 1)


@given(
    cores=st.integers(1, 32),
    divisor=st.integers(1, 4),
    waiting=st.integers(1, 100),
    running=st.lists(st.builds(Plan, st.sampled_from(["wide", "narrow"]), st.integers(1, 8)), max_size=16),
    best=st.integers(1, 8),
)
def test_no_plan_runs_more_than_there_is_room_for_or_nothing_while_the_engine_is_idle(
    cores, divisor, waiting, running, best
):
    gears = Gears(cores=cores, lanes=max(cores // divisor, 1))
    found = plan(gears, waiting, running, best)
    if not running:
        assert found is not None
    if found:
        assert [run.gear for run in running].count(found.gear) < gears.runs[found.gear] <= gears.concurrency
        assert found.gear == "wide" or len(running) < gears.lanes
        assert 1 <= found.images <= min(waiting, best)


@given(
    cores=st.integers(1, 16), lanes=st.integers(1, 16), arrivals=st.lists(st.integers(0, 12), min_size=1, max_size=30)
)
def test_every_image_is_run_whatever_the_load_does(cores, lanes, arrivals):
    gears = Gears(cores=cores, lanes=min(cores, lanes))
    waiting, running, done = 0, [], 0
    for arrived in [*arrivals, *[0] * (sum(arrivals) + 1)]:
        waiting += arrived
        while waiting and (found := plan(gears, waiting, running)):
            waiting -= found.images
            running.append(found)
        if running:
            done += running.pop(0).images
    assert done == sum(arrivals)


def test_one_lane_is_one_gear():
    assert Gears(cores=1).runs.keys() == {"wide"}
    assert plan(Gears(cores=4), 50, []) == Plan("wide", 4)


@pytest.mark.parametrize(("cores", "lanes", "threads"), [(2, 2, 1), (16, 16, 1), (16, 8, 9), (16, 1, 16)])
def test_the_lanes_and_the_threads_of_their_session_are_the_cores(cores, lanes, threads):
    assert threads_of(cores=cores, lanes=lanes) == threads
    assert lanes + threads - 1 == cores  # a lane's caller is one of the session's threads while it runs


class Machine:
    """A run takes `seconds`, by the threads of its session, while all lanes are busy. Its clock is its own."""

    def __init__(self, cores, seconds):
        self.cores, self.seconds = cores, seconds
        self.opened: list[int] = []
        self.now = 0.0
        self._lock = threading.Lock()

    def open_run(self, threads):
        self.opened.append(threads)
        lanes = self.cores - threads + 1

        def run():
            with self._lock:
                self.now += self.seconds[threads] / lanes

        return run


@pytest.mark.parametrize(("cores", "lanes"), [(1, 1), (2, 2), (3, 3)])
def test_where_there_is_no_choice_nothing_is_measured(cores, lanes):
    machine = Machine(cores, {})
    assert choose_lanes(cores, machine.open_run) == lanes
    assert machine.opened == []


@pytest.mark.parametrize(
    ("seconds", "lanes"),
    [
        ({1: 0.08, 5: 0.06, 7: 0.05}, 8),  # eight lanes bring 100 images a second, four 67, two 40
        ({1: 0.16, 5: 0.04, 7: 0.05}, 4),  # 50, 100, 40
        ({1: 0.08, 5: 0.0385, 7: 0.05}, 8),  # 100, 104, 40: too little for wider lanes
    ],
    ids=["the narrowest are best", "wider are better", "wider are hardly better"],
)
def test_of_several_widths_the_one_that_brings_most_is_taken(monkeypatch, seconds, lanes):
    machine = Machine(8, seconds)
    monkeypatch.setattr(time, "perf_counter", lambda: machine.now)
    assert choose_lanes(8, machine.open_run) == lanes
    assert machine.opened == [1, 5, 7]
