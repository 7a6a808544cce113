"""`python -m lab.load.bodies`: bodies that try to cost a server memory or time; writes tables in lab/load/README.md.

Growth is that of allocated memory; peak is the largest resident memory meanwhile, minus that before.
"""

import gzip
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from lab.benchmarks.__main__ import publish
from lab.benchmarks.record import Row
from lab.load.background import probed
from lab.load.server import settled
from tests.catalogue.json_bodies import bodies
from tests.support.connection import JSON, Answer, Connection, file_part, form, message, post
from tests.support.peak import peak_mib, reset_peak
from tests.support.server import Server, running

ROUNDS = 10
JSON_ROUNDS = 3
JSON_BYTES = 2**20
PROBE_S = 0.01  # between two requests to /livez
SENDERS = 200
MAX_BYTES = 32 * 2**20  # of VIT_MAX_UPLOAD_BYTES
MAX_GROWTH_MIB = 5.0
FIRST_WAVE = f"slow sender x {SENDERS}"  # for so many requests at once the heap grows, and must not the next time

Attack = Callable[[Server], list[Answer]]


class Finding(NamedTuple):
    name: str
    statuses: set[int]
    slowest_s: float
    livez_s: float  # the slowest answer of /livez meanwhile
    growth_mib: float
    peak_mib: float


def once(data: bytes) -> Attack:
    def attack(server: Server) -> list[Answer]:
        with Connection(server.port) as connection:
            connection.send(data)
            answer = connection.answer()
            assert answer
            return [answer]

    return attack


def chunked(body: bytes) -> bytes:
    return message("POST /classify", "Transfer-Encoding: chunked", body=body)


def slow(server: Server) -> list[Answer]:
    """Each sender sends one byte of its body and then nothing."""
    with ExitStack() as stack:
        senders = [stack.enter_context(Connection(server.port, timeout_s=60)) for _ in range(SENDERS)]
        for sender in senders:
            sender.send(message("POST /classify", "Content-Length: 1000000", body=b"x"))
        return [answer for sender in senders for answer in sender.answers()]


def attacks() -> dict[str, Attack]:
    part = file_part(b"x")
    return {
        "1,000,000 chunks of one byte": once(chunked(b"1\r\nx\r\n" * 10**6 + b"0\r\n\r\n")),
        "limit + 1 byte, declared": once(post(bytes(MAX_BYTES + 1))),
        "limit + 1 byte, in chunks": once(
            chunked((b"100000\r\n" + bytes(2**20) + b"\r\n") * 32 + b"1\r\nx\r\n0\r\n\r\n")
        ),
        "gzip bomb, 100 MB in 100 KB": once(post(gzip.compress(bytes(10**8)), "Content-Encoding: gzip")),
        "10,000 parts": once(form(*[part] * 10_000)),
        FIRST_WAVE: slow,
        f"{FIRST_WAVE}, once more": slow,
    }


def measure(server: Server, name: str, attack: Attack, rounds: int) -> Finding:
    settled(server)
    before = server.anonymous_mib()
    reset_peak(server.pid)
    at_rest = peak_mib(server.pid)
    slowest, statuses = 0.0, set()
    with probed(server, "/livez", every_s=PROBE_S) as livez:
        for _ in range(rounds):
            start = time.perf_counter()
            statuses |= {answer.status for answer in attack(server)}
            slowest = max(slowest, time.perf_counter() - start)
    peak = peak_mib(server.pid) - at_rest
    settled(server)
    growth = server.anonymous_mib() - before
    return Finding(name, statuses, slowest, max(livez), growth, peak)


def main() -> None:
    good = once(post(Path("docs/star.jpg").read_bytes()))
    with running(log_level="error") as server:
        for _ in range(100):
            good(server)
        findings = [
            measure(server, name, attack, 1 if attack is slow else ROUNDS)
            for name, attack in tqdm(attacks().items(), desc="attacks")
        ]
        in_json: dict[str, list[Finding]] = {}
        for body in tqdm(bodies(), desc="bodies in JSON"):
            attack = once(post(body.make(JSON_BYTES), JSON, path=body.path))
            in_json.setdefault(body.path, []).append(measure(server, body.name, attack, JSON_ROUNDS))
        assert good(server)[0].status == 200
    publish("bodies", [{"attack": finding.name, **worst([finding])} for finding in findings])
    rows = [{"to": path, "kinds of bodies": len(each), **worst(each)} for path, each in in_json.items()]
    publish("json_bodies", rows)
    judged = [finding for finding in findings if finding.name != FIRST_WAVE]
    sys.exit(max(finding.growth_mib for each in (judged, *in_json.values()) for finding in each) >= MAX_GROWTH_MIB)


def worst(findings: list[Finding]) -> Row:
    _, statuses, slowest, livez, growth, peak = zip(*findings, strict=True)
    return {
        "status": ", ".join(map(str, sorted(set().union(*statuses)))),
        "slowest answer, s": round(max(slowest), 2),
        "longest /livez, ms": round(1000 * max(livez)),
        "growth, MiB": round(max(growth), 1),
        "peak, MiB": round(max(peak), 1),
    }


if __name__ == "__main__":
    main()
