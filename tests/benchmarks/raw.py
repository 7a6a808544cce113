"""Raw loops of a graph: `session.run` and nothing else, in every arrangement of runs, threads and batches."""

import threading
import time
from pathlib import Path
from typing import NamedTuple

import onnxruntime as ort

from app.machine import allowed_cores
from tests.benchmarks.graph import runner

BATCHES = (1, 2, 3, 4, 6, 8)
LEAST_RUNS = 2  # of each thread, however long they take


class Arrangement(NamedTuple):
    runs: int  # at a time
    threads: int  # of each run
    spinning: bool  # whether ONNX Runtime's threads wait for work in a loop
    batch: int

    def __str__(self) -> str:
        spinning = ", spinning" if self.spinning else ""
        return f"{self.runs} × {self.threads}, batch {self.batch}{spinning}"


def arrangements(cores: int) -> list[Arrangement]:
    """One run on all cores, spinning and not; two such runs at a time; and a run of one thread on each core."""
    ways = [(1, cores, True), (1, cores, False), (2, cores, False), (cores, 1, False)]
    return [Arrangement(*way, batch) for way in dict.fromkeys(ways) for batch in BATCHES]


class RawLoop:
    """Holds a session for each number of threads."""

    def __init__(self, graph: Path) -> None:
        self._graph = graph
        self._sessions: dict[tuple[int, bool], ort.InferenceSession] = {}

    def rate(self, arrangement: Arrangement, seconds: float) -> float:
        """Images/s: the sum over the runs that go on at a time."""
        session = self._session(arrangement.threads, spinning=arrangement.spinning)
        run = runner(session, arrangement.batch)
        run()
        rates: list[float] = []

        def loop() -> None:
            start, done = time.perf_counter(), 0
            while done < LEAST_RUNS or time.perf_counter() < start + seconds:
                run()
                done += 1
            rates.append(done * arrangement.batch / (time.perf_counter() - start))

        threads = [threading.Thread(target=loop) for _ in range(arrangement.runs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(rates)

    def best(self, count: int, seconds: float) -> list[Arrangement]:
        """Those with the highest rate in a loop of so many seconds each, the best first."""
        rates = {one: self.rate(one, seconds) for one in arrangements(allowed_cores())}
        return sorted(rates, key=lambda one: -rates[one])[:count]

    def _session(self, threads: int, *, spinning: bool) -> ort.InferenceSession:
        key = (threads, spinning)
        if key not in self._sessions:
            options = ort.SessionOptions()
            options.intra_op_num_threads = threads
            options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spinning)))
            self._sessions[key] = ort.InferenceSession(str(self._graph), options, providers=["CPUExecutionProvider"])
        return self._sessions[key]
