"""How many cores a run gets: all of them while there are few images, a lane of its own while there are many.

A run on all cores answers soonest, but after every operator its threads wait for the slowest of them. Runs on a thread
each wait for nobody, so together they bring more images a second, as soon as there are more images than they are. So
the engine has two gears:

- wide: the session has a thread for each core. Two runs at a time, and the second fills the cores while the first waits
  for its slowest thread.
- narrow: the cores are divided into lanes, and there is a run in each. All lanes share one session, whose own threads
  are the cores that are left: a thread that calls a run also computes it.

There is no timer and nothing to switch: each run takes the gear that suits the images in work when it begins. So a lone
image never waits, and all that a change of the load costs is that the last runs of one gear overlap the first of the
other. A model so small that even a lone image is answered sooner by one thread stays in the narrow gear.
"""

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from app.inference.contract import Gear, Plan

WIDE_RUNS = 2  # at a time
WIDTHS = (1, 2, 4, 8)  # cores of a lane
WIDER_RATIO = 1.1  # to the throughput of narrower lanes, from which wider ones are used: they hold more images in work
RUNS = 2  # in each lane, to measure a width; the first is not measured


class Gears:
    def __init__(self, *, cores: int, lanes: int = 1, wide_runs: int = WIDE_RUNS) -> None:
        """With one lane there is only the wide gear."""
        self.lanes = lanes
        self.runs: dict[Gear, int] = {"wide": wide_runs}  # at a time
        self.threads: dict[Gear, int] = {"wide": cores}  # of ONNX Runtime, the calling one among them
        if lanes > 1:
            self.runs["narrow"] = lanes
            self.threads["narrow"] = threads_of(cores=cores, lanes=lanes)

    @property
    def concurrency(self) -> int:
        """Most runs at a time, of both gears together."""
        return max(self.runs.values())

    def plan(
        self, *, waiting: int, running: Sequence[Plan], best: Callable[[Gear], int], alone: Gear = "wide"
    ) -> Plan | None:
        """The next run, or None if one of those under way has to end before.

        `waiting` images are in no run yet, `running` are the runs under way, `best` tells how many images pay in a run,
        and `alone` is the gear that answers a lone image sooner. Images for which there are not lanes enough are
        divided among all lanes, also those that are not free yet: a lane that took more than its share would make the
        last of them wait, while the others have nothing left to do. While lanes are in use, half as many images are
        enough for another: else it would wait, beside idle cores, for all lanes to end.
        """
        in_use = [run.gear for run in running]
        enough = self.lanes // 2 if "narrow" in in_use else self.lanes
        lanes_pay = alone == "narrow" or waiting + sum(run.images for run in running) > enough
        if "narrow" in self.runs and lanes_pay:
            if len(running) >= self.lanes:
                return None
            return Plan("narrow", min(best("narrow"), math.ceil(waiting / self.lanes)))
        if in_use.count("wide") >= self.runs["wide"]:
            return None
        return Plan("wide", min(best("wide"), waiting))


def threads_of(*, cores: int, lanes: int) -> int:
    """Threads of a session in which so many runs at a time occupy so many cores."""
    return cores - lanes + 1


def choose_lanes(cores: int, open_run: Callable[[int], Callable[[], object]]) -> int:
    """The number of lanes that brings most images a second, found by trying where there is a choice.

    `open_run` makes a session with so many threads, and returns a run of one image in it.
    """
    found = [cores // width for width in WIDTHS if cores // width > 1]
    if len(found) < 2:
        return max(found, default=1)
    rates = {lanes: _rate(lanes, open_run(threads_of(cores=cores, lanes=lanes))) for lanes in found}
    best = found[0]
    for lanes in found[1:]:
        if rates[lanes] > WIDER_RATIO * rates[best]:
            best = lanes
    return best


def _rate(lanes: int, run: Callable[[], object]) -> float:
    """Images a second while all lanes are busy."""
    with ThreadPoolExecutor(lanes) as callers:
        for _ in range(RUNS):
            start = time.perf_counter()
            for each in [callers.submit(run) for _ in range(lanes)]:
                each.result()
            seconds = time.perf_counter() - start
    return lanes / seconds
