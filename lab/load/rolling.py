"""`python -m lab.load.rolling [ROUNDS]`: three replicas restarted in turn, and killed, behind nginx and HAProxy.

Replicas let requests wait, so every failure is one that a restart caused. The table goes to lab/load/README.md.
"""

import sys

from lab.benchmarks.__main__ import publish
from lab.benchmarks.load import percentile
from lab.benchmarks.record import Row, Rows
from tests.support.balancers import BALANCERS, balanced
from tests.support.pictures import jpeg
from tests.support.replicas import kill_at_work, restart_all
from tests.support.server import PATIENT
from tests.support.traffic import Traffic, steady

RATE = 20.0  # requests a second
ROUNDS = 10


def measure(rounds: int) -> Rows:
    rows: Rows = []
    for name, start in BALANCERS.items():
        with balanced(start, **PATIENT) as (balancer, running):
            with steady(balancer.port, jpeg(), RATE) as traffic:
                for _ in range(rounds):
                    restart_all(running)
            rows.append(row(name, f"SIGTERM, {rounds} times each", traffic))
            with steady(balancer.port, jpeg(), RATE) as traffic:
                for replica in running * rounds:
                    kill_at_work(replica, traffic)
                    replica.revive()
            rows.append(row(name, f"kill -9, {rounds} times each", traffic))
    return rows


def row(balancer: str, what: str, traffic: Traffic) -> Row:
    return {"balancer": balancer, "each replica gets": what} | outcome(traffic)


def outcome(traffic: Traffic) -> Row:
    for failure in traffic.failures:
        print(failure, file=sys.stderr)
    return {
        "requests": len(traffic.seconds) + len(traffic.failures),
        "failed": len(traffic.failures),
        "p50, ms": round(1000 * percentile(traffic.seconds, 0.5)),
        "p99, ms": round(1000 * percentile(traffic.seconds, 0.99)),
        "longest, ms": round(1000 * max(traffic.seconds)),
    }


if __name__ == "__main__":
    publish("rolling", measure(int(sys.argv[1]) if sys.argv[1:] else ROUNDS))
