"""`python -m lab.load.catalogue [ROUNDS]`: send the whole catalogue to a real server; for lab/load/README.md.

It exits with 1 unless every answer was an expected one.
"""

import sys
import time
from collections import Counter

import httpx
import numpy as np
from tqdm import tqdm

from lab.benchmarks.__main__ import publish
from lab.benchmarks.record import Row
from tests.catalogue.every import CASES
from tests.support.server import family, running

ROUNDS = 100
STORE_BYTES = 10**6  # soon full, so that stored maps do not count as growth
WARM_UP = 3  # rounds in which memory may grow: allocators and caches fill


def main() -> None:
    rounds = int(sys.argv[1]) if sys.argv[1:] else ROUNDS
    inputs = [(case, case.make()) for case in CASES.values()]
    answers: Counter[int] = Counter()
    wrong: Counter[str] = Counter()
    longest: dict[str, float] = {}  # seconds, by input
    memory: list[float] = []  # MiB after each round
    with running(store_max_bytes=STORE_BYTES) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        before = set(family(server.pid))
        for _ in tqdm(range(rounds), desc="rounds"):
            for case, data in inputs:
                start = time.perf_counter()
                try:
                    status = client.post("/classify", content=data).status_code
                except httpx.TransportError:
                    status = 0
                longest[case.name] = max(longest.get(case.name, 0.0), time.perf_counter() - start)
                answers[status] += 1
                if status not in case.statuses:
                    wrong[f"{case.name}: {status or 'reset'}"] += 1
            memory.append(server.anonymous_mib())
        after, same = set(family(server.pid)), server.poll() is None
    resets, later = answers.pop(0, 0), memory[WARM_UP:]
    slowest = max(longest, key=longest.__getitem__)
    row: Row = {
        "inputs": len(CASES),
        "answers": answers.total(),
        "by status": ", ".join(f"{status}: {count}" for status, count in sorted(answers.items())),
        "5xx": sum(count for status, count in answers.items() if status >= 500),
        "resets": resets,
        "unexpected": wrong.total() - resets,
        "slowest": f"{slowest}, {1000 * longest[slowest]:.0f} ms",
        "same process": "yes" if same else "no",
        "decoders replaced": len(after - before),
        "allocated, MiB": f"{memory[0]:.1f} to {memory[-1]:.1f}",
        "growth, MiB per round": round(float(np.polyfit(range(len(later)), later, 1)[0]), 3) if len(later) > 1 else 0.0,
    }
    publish("catalogue", [row])
    for answer, times in wrong.items():
        print(f"{answer} ({times} times)", file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
