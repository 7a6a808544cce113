"""`python -m tests.load.catalogue [ROUNDS] [BASE_URL]`: the catalogue, round after round, at a real server.

Without an address it starts one on a free port of this machine and also watches its memory. Ends with 1 unless every
answer was one of those expected.
"""

import json
import sys
import time
from collections import Counter
from pathlib import Path

import httpx

from app.settings import DEMO_BUNDLE
from tests.benchmarks.server import Server, family, running
from tests.catalogue.case import Case
from tests.catalogue.every import CASES

ROUNDS = 100
STORE_BYTES = "1000000"  # full after a moment: what is kept on purpose is no growth
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

    def report(self, rounds: int, processes: list[set[int]]) -> dict[str, object]:
        slowest = max(self.slowest, key=self.slowest.__getitem__)
        return {
            "inputs": len(CASES),
            "rounds": rounds,
            "answers": sum(self.by_status.values()),
            "by status": dict(sorted(self.by_status.items())),
            "5xx": sum(count for status, count in self.by_status.items() if status >= "5"),
            "resets": self.resets,
            "not as expected": dict(self.wrong),
            "same process": self.server is None or self.server.pid in family(self.server.pid),
            "decoders replaced": len(processes[-1] - processes[0]) if processes else None,
            "slowest": f"{slowest}, {1000 * self.slowest[slowest]:.0f} ms",
            "resident, MiB": [round(value, 1) for value in self.memory[:: max(len(self.memory) // 10, 1)]],
            "growth, MiB a round": round(slope(self.memory[WARM_UP:]), 3),
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
    inputs = [(case, case.make()) for case in CASES.values()]
    result = Run(base, server)
    processes = [set(family(server.pid))] if server else []
    with httpx.Client(timeout=60) as client:
        for _ in range(rounds):
            for case, data in inputs:
                result.post(client, case, data)
            if server:
                result.memory.append(server.resident_mib())
                processes.append(set(family(server.pid)))
    report = result.report(rounds, processes)
    Path(__file__).with_suffix(".json").write_text(json.dumps(report, indent=2) + "\n")
    print("| | |\n| --- | --- |")
    for name, value in report.items():
        print(f"| {name} | {value} |")
    return result


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    if len(sys.argv) > 2:
        result = run(sys.argv[2], rounds)
    else:
        with running(DEMO_BUNDLE, VIT_STORE_MAX_BYTES=STORE_BYTES) as server:
            result = run(server.url, rounds, server)
    sys.exit(not result.as_expected)


if __name__ == "__main__":
    main()
