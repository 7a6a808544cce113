"""`python -m tests.load.store_faults`: what faults of Redis cost a request; writes the table in docs/operations.md.

A real server with the demo model and a real Redis, under an open loop. While images are classified, a map stored before
is requested again and again. Faults alternate with a healthy Redis over several rounds.
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
RATE = 20.0  # images per second
ASKED_EVERY_S = 0.1
RECOVERY_S = 30.0  # at most

Row = dict[str, str | float]


class Polling(threading.Thread):
    """GET a map until `stop`, and count the statuses."""

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
    polling = Polling(f"{server.url}{kept}?format=json")
    fault()
    polling.start()
    found = server.load(request, SECONDS, rate=RATE)
    polling.stop()
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
        **{str(status): count for status, count in polling.statuses.items()},
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
        "responses of GET /attention": ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items())),
        "maps stored again after, s": round(max(float(one["recovery"]) for one in found), 2),
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
