"""`python -m lab.load.store_faults`: what faults of Redis cost a request; writes the table in lab/load/README.md.

While images are classified in an open loop, a map stored before is requested again and again.
"""

import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from lab.benchmarks.__main__ import publish
from lab.benchmarks.record import Row, Rows
from lab.benchmarks.rounds import in_turn
from lab.benchmarks.under_load import under_load
from lab.load.background import repeated
from tests.support.pictures import classify_jpeg, jpeg
from tests.support.processes import eventually
from tests.support.redis_server import RedisServer, running_redis
from tests.support.server import Server, running

ROUNDS = 3
SECONDS = 20.0
RATE = 20.0  # images per second
ASKED_EVERY_S = 0.1
RECOVERY_S = 30.0  # at most


class Observed(NamedTuple):
    """Of one fault in one round."""

    figures: dict[str, float]  # of the load
    statuses: Counter[int]  # of the responses of GET /attention
    recovery_s: float


def observe(server: Server, fault: Callable[[], object], repair: Callable[[], object]) -> Observed:
    statuses: Counter[int] = Counter()
    with httpx.Client(base_url=server.url, timeout=30) as client:
        kept = classified(server)["attention"]

        def ask() -> None:
            statuses[client.get(f"{kept}?format=json").status_code] += 1

        fault()
        with repeated(ask, every_s=ASKED_EVERY_S):
            figures = under_load(server, classify_jpeg(), SECONDS, rate=RATE)
    repair()
    repaired = time.perf_counter()
    eventually(lambda: "id" in classified(server), RECOVERY_S)
    return Observed(figures, statuses, time.perf_counter() - repaired)


def classified(server: Server) -> dict[str, Any]:
    return dict(httpx.post(f"{server.url}/classify", content=jpeg()).json()["results"][0])


def measure(redis: RedisServer) -> Rows:
    def limit(memory: int) -> None:
        with redis.client() as client:
            client.config_set("maxmemory", memory)

    def restart() -> None:
        redis.stop()
        redis.start()

    with running() as alone, running(store=redis.url) as server:
        turns = {
            "in memory": partial(observe, alone, int, int),  # which do nothing
            "healthy": partial(observe, server, int, int),
            "stopped": partial(observe, server, redis.stop, restart),
            "never answers": partial(observe, server, redis.freeze, redis.thaw),
            "full": partial(observe, server, partial(limit, 1), partial(limit, 0)),
        }
        rounds = in_turn(turns, ROUNDS)
    return [row(name, of_fault) for name, of_fault in rounds.items()]


def row(name: str, rounds: list[Observed]) -> Row:
    statuses = sum((one.statuses for one in rounds), Counter[int]())
    return {
        "Redis": name,
        "classified": sum(round(one.figures["images"]) for one in rounds),
        "failed": sum(round(one.figures["failed"]) for one in rounds),
        "p50, ms": round(statistics.median(one.figures["p50_ms"] for one in rounds), 1),
        "p99, ms": round(statistics.median(one.figures["p99_ms"] for one in rounds), 1),
        "responses of GET /attention": ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items())),
        "maps stored again after, s": round(max(one.recovery_s for one in rounds), 2),
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, running_redis(Path(folder)) as redis:
        publish("store_faults", measure(redis))
