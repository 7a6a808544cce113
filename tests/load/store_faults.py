"""`python -m tests.load.store_faults`: what the faults of Redis cost a request; writes the table in docs/operations.md.

A real server and a real Redis, the demo model, an open loop. While pictures are classified, a map that was kept before
is asked for again and again. Faults take turns with a healthy Redis, several times over.
"""

import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx
from tqdm import tqdm

from app.settings import DEMO_BUNDLE
from tests.benchmarks.__main__ import publish
from tests.benchmarks.load import post
from tests.benchmarks.pictures import jpeg
from tests.benchmarks.server import Server, running
from tests.support.redis_server import RedisServer

ROUNDS = 3
SECONDS = 20.0
RATE = 20.0  # pictures a second
ASKED_EVERY_S = 0.1
RECOVERY_S = 30.0  # that is waited for at most

Row = dict[str, str | float]


class Asking(threading.Thread):
    """GET a map until told to stop; counts the statuses."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._enough = threading.Event()
        self.statuses: Counter[int] = Counter()

    def run(self) -> None:
        with httpx.Client(timeout=30) as client:
            while not self._enough.wait(ASKED_EVERY_S):
                self.statuses[client.get(self._url).status_code] += 1

    def stop(self) -> None:
        self._enough.set()
        self.join()


def observe(server: Server, fault: Callable[[], object], repair: Callable[[], object]) -> Row:
    request = post("/classify", jpeg(), "image/jpeg")
    kept = httpx.post(f"{server.url}/classify", content=jpeg()).json()["results"][0]["attention"]
    asking = Asking(f"{server.url}{kept}?format=json")
    fault()
    asking.start()
    found = server.load(request, SECONDS, rate=RATE)
    asking.stop()
    repair()
    repaired = time.perf_counter()
    while "id" not in httpx.post(f"{server.url}/classify", content=jpeg()).json()["results"][0]:
        if time.perf_counter() > repaired + RECOVERY_S:
            raise RuntimeError("the service did not find its store again")
        time.sleep(0.02)
    return {
        "classified": found["images"],
        "failed": found["failed"],
        "p50": found["p50_ms"],
        "p99": found["p99_ms"],
        "recovery": time.perf_counter() - repaired,
        **{str(status): count for status, count in asking.statuses.items()},
    }


def measure(redis: RedisServer) -> list[Row]:
    def full() -> None:
        with redis.client() as client:
            client.config_set("maxmemory", 1)

    def emptied() -> None:
        with redis.client() as client:
            client.config_set("maxmemory", 0)

    def restart() -> None:
        redis.stop()
        redis.start()

    faults: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "healthy": (int, int),
        "stopped": (redis.stop, restart),
        "never answers": (redis.freeze, redis.thaw),
        "full": (full, emptied),
    }
    rounds: dict[str, list[Row]] = {name: [] for name in ("in memory", *faults)}
    with running(DEMO_BUNDLE) as alone, running(DEMO_BUNDLE, {"VIT_STORE": redis.url}) as server:
        for _ in tqdm(range(ROUNDS)):
            rounds["in memory"].append(observe(alone, int, int))
            for name, (fault, repair) in faults.items():
                rounds[name].append(observe(server, fault, repair))
    return [row(name, found) for name, found in rounds.items()]


def row(name: str, found: list[Row]) -> Row:
    def median(key: str) -> float:
        return statistics.median(float(one[key]) for one in found)

    statuses: Counter[str] = Counter()
    for one in found:
        statuses.update({key: int(count) for key, count in one.items() if key.isdecimal()})
    return {
        "Redis": name,
        "classified": sum(int(one["classified"]) for one in found),
        "failed": sum(int(one["failed"]) for one in found),
        "p50, ms": round(median("p50"), 1),
        "p99, ms": round(median("p99"), 1),
        "GET /attention answered": ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items())),
        "maps are kept again after, s": round(max(float(one["recovery"]) for one in found), 2),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        redis = RedisServer(Path(folder))
        redis.start()
        try:
            rows = measure(redis)
        finally:
            redis.stop()
    publish("store_faults", rows, Path(__file__).parent)


if __name__ == "__main__":
    main()
