"""`python -m tests.benchmarks.batches GRAPH`: milliseconds of each batch size and peak memory so far, as JSON."""

import json
import statistics
import sys
import time
from pathlib import Path

from tests.benchmarks.graph import runner, session
from tests.benchmarks.peak import peak_mib

BATCHES = (1, 2, 4, 8, 16)
SECONDS = 1.0  # for each; at least three runs


def measured(graph: Path) -> list[dict[str, float]]:
    opened = session(graph)
    found = []
    for batch in BATCHES:
        run = runner(opened, batch)
        run()
        times: list[float] = []
        while len(times) < 3 or sum(times) < SECONDS:
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        found.append({"batch": batch, "ms": 1000 * statistics.median(times), "peak_mib": peak_mib("self")})
    return found


if __name__ == "__main__":
    print(json.dumps(measured(Path(sys.argv[1]))))
