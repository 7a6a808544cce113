"""`python -m tests.load.catalogue [ROUNDS] [BASE_URL]`: send the whole catalogue to a real server, ROUNDS times.

Without an address it starts a server on a free port, watches its memory, and writes the table into docs/security.md. It
exits with 1 unless every answer was an expected one.
"""

import sys
import time
from collections import Counter
from pathlib import Path

import httpx
from tqdm import tqdm

from app.settings import DEMO_BUNDLE
from tests.benchmarks.__main__ import publish
from tests.benchmarks.page import table
from tests.benchmarks.server import Server, family, running
from tests.catalogue.case import Case
from tests.catalogue.every import CASES

ROUNDS = 100
STORE_BYTES = "1000000"  # soon full, so that stored maps do not count as growth
WARM_UP = 3  # rounds in which memory may grow: allocators and caches fill


class Run:
    """What a server answered so far."""

    def __init__(self, base: str, server: Server | None) -> None:
        self.base = base
        self.server = server
        self.by_status: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.slowest: dict[str, float] = {}
        self.memory: list[float] = []
        self.resets = 0

    def post(self, client: httpx.Client, case: Case, data: bytes) -> None:
        start = time.perf_counter()
        try:
            status = client.post(f"{self.base}/classify", content=data).status_code
        except httpx.TransportError:
            self.resets += 1
            return
        self.slowest[case.name] = max(self.slowest.get(case.name, 0.0), time.perf_counter() - start)
        self.by_status[str(status)] += 1
        if status not in case.statuses:
            self.wrong[f"{case.name}: {status}"] += 1

    @property
    def row(self) -> dict[str, str | float]:
        slowest = max(self.slowest, key=self.slowest.__getitem__)
        return {
            "inputs": len(CASES),
            "answers": sum(self.by_status.values()),
            "by status": ", ".join(f"{status}: {count}" for status, count in sorted(self.by_status.items())),
            "5xx": sum(count for status, count in self.by_status.items() if status >= "5"),
            "resets": self.resets,
            "unexpected": sum(self.wrong.values()),
            "slowest": f"{slowest}, {1000 * self.slowest[slowest]:.0f} ms",
        }

    def watched(self, processes: list[set[int]]) -> dict[str, str | float]:
        """More columns for a server that this script started; `processes` are its ids before and after each round."""
        assert self.server
        before, after = processes[0], processes[-1]
        return {
            "same process": "yes" if self.server.pid in after else "no",
            "decoders replaced": len(after - before),
            "allocated, MiB": f"{self.memory[0]:.1f} to {self.memory[-1]:.1f}",
            "growth, MiB per round": round(slope(self.memory[WARM_UP:]), 3),
        }

    @property
    def as_expected(self) -> bool:
        return not (self.wrong or self.resets)


def slope(values: list[float]) -> float:
    """Of the least-squares line through values at 0, 1, 2, ..."""
    middle = (len(values) - 1) / 2
    spread = sum((i - middle) ** 2 for i in range(len(values)))
    return sum((i - middle) * value for i, value in enumerate(values)) / spread if spread else 0.0


def run(base: str, rounds: int, server: Server | None = None) -> Run:
    """Prints the table, and writes it where the server is our own."""
    inputs = [(case, case.make()) for case in CASES.values()]
    result = Run(base, server)
    processes = [set(family(server.pid))] if server else []
    with httpx.Client(timeout=60) as client:
        for _ in tqdm(range(rounds), desc="rounds"):
            for case, data in inputs:
                result.post(client, case, data)
            if server:
                result.memory.append(server.anonymous_mib())
                processes.append(set(family(server.pid)))
    if server:
        publish("catalogue", [result.row | result.watched(processes)], Path(__file__).parent)
    else:
        print(table([result.row]))
    for wrong, times in result.wrong.items():
        print(f"{wrong} ({times} times)", file=sys.stderr)
    return result


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    if len(sys.argv) > 2:
        result = run(sys.argv[2], rounds)
    else:
        with running(DEMO_BUNDLE, {"VIT_STORE_MAX_BYTES": STORE_BYTES}) as server:
            result = run(server.url, rounds, server)
    sys.exit(not result.as_expected)


if __name__ == "__main__":
    main()
