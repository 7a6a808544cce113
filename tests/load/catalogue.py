"""`python -m tests.load.catalogue [ROUNDS]`: send the whole catalogue to a real server, ROUNDS times.

It watches the memory of the server and writes the table into docs/security.md. It exits with 1 unless every answer was
an expected one.
"""

import sys
import time
from collections import Counter
from pathlib import Path

import httpx
import numpy as np
from tqdm import tqdm

from tests.benchmarks.__main__ import publish
from tests.benchmarks.record import Row
from tests.benchmarks.server import Server, family, running
from tests.catalogue.case import Case
from tests.catalogue.every import CASES

ROUNDS = 100
STORE_BYTES = 10**6  # soon full, so that stored maps do not count as growth
WARM_UP = 3  # rounds in which memory may grow: allocators and caches fill


class Run:
    """What a server answered so far, and after each round what it holds."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.by_status: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.slowest: dict[str, float] = {}
        self.resets = 0
        self.memory: list[float] = []
        self.before = self.after = set(family(server.pid))  # ids of its processes

    def post(self, client: httpx.Client, case: Case, data: bytes) -> None:
        start = time.perf_counter()
        try:
            status = client.post(f"{self.server.url}/classify", content=data).status_code
        except httpx.TransportError:
            self.resets += 1
            return
        self.slowest[case.name] = max(self.slowest.get(case.name, 0.0), time.perf_counter() - start)
        self.by_status[str(status)] += 1
        if status not in case.statuses:
            self.wrong[f"{case.name}: {status}"] += 1

    def watch(self) -> None:
        self.memory.append(self.server.anonymous_mib())
        self.after = set(family(self.server.pid))

    @property
    def row(self) -> Row:
        slowest = max(self.slowest, key=self.slowest.__getitem__)
        later = self.memory[WARM_UP:]
        return {
            "inputs": len(CASES),
            "answers": sum(self.by_status.values()),
            "by status": ", ".join(f"{status}: {count}" for status, count in sorted(self.by_status.items())),
            "5xx": sum(count for status, count in self.by_status.items() if status >= "5"),
            "resets": self.resets,
            "unexpected": sum(self.wrong.values()),
            "slowest": f"{slowest}, {1000 * self.slowest[slowest]:.0f} ms",
            "same process": "yes" if self.server.poll() is None else "no",
            "decoders replaced": len(self.after - self.before),
            "allocated, MiB": f"{self.memory[0]:.1f} to {self.memory[-1]:.1f}",
            "growth, MiB per round": round(np.polyfit(range(len(later)), later, 1)[0], 3) if len(later) > 1 else "",
        }


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    inputs = [(case, case.make()) for case in CASES.values()]
    with running(store_max_bytes=STORE_BYTES) as server, httpx.Client(timeout=60) as client:
        run = Run(server)
        for _ in tqdm(range(rounds), desc="rounds"):
            for case, data in inputs:
                run.post(client, case, data)
            run.watch()
    publish("catalogue", [run.row], Path(__file__).parent)
    for wrong, times in run.wrong.items():
        print(f"{wrong} ({times} times)", file=sys.stderr)
    sys.exit(bool(run.wrong or run.resets))


if __name__ == "__main__":
    main()
