"""`python -m lab.benchmarks.load PORT SECONDS LOOP`: load on loopback, of the request on standard input.

LOOP is JSON: the other arguments of `closed_loop` or `open_loop`. It prints the figures and the milliseconds of each
answer by status, in two lines of JSON. The request is sent on plain sockets: on a machine that also runs the server, a
client library's own CPU time would distort the measurement.

Closed loop: each of N connections sends its next request when the last is answered. Open loop: R requests a second are
due at random times (Poisson), whether earlier ones are answered or not. Each is timed from the moment it was due, so
its wait behind others counts in full (no "coordinated omission"). Refusals (503) are timed too; other outcomes are
counted by name.
"""

import asyncio
import json
import math
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import repeat
from typing import NamedTuple

from tests.support.arrivals import arrivals

HOST = "127.0.0.1"
PATIENCE_S = 30.0  # for the last answers of an open loop

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Found = tuple[dict[str, float], dict[str, list[float]]]  # figures, and the seconds of each answer by status


class Answer(NamedTuple):
    status: int
    head: bytes
    body: bytes


class RefusedError(Exception):
    """An answer other than 200."""


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def exchange(connection: Connection, request: bytes) -> bytes:
    """The body of the answer. Raises RefusedError."""
    answer = await answered(connection, request)
    if answer.status != 200:
        raise RefusedError((answer.head + answer.body).decode(errors="replace"))
    return answer.body


async def answered(connection: Connection, request: bytes) -> Answer:
    """Raises OSError or IncompleteReadError where the connection ends first."""
    reader, writer = connection
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    body = b""
    if b"transfer-encoding: chunked" in head.lower():
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:size]
        await reader.readexactly(2)
    else:
        body = await reader.readexactly(int(head.lower().split(b"\r\ncontent-length:")[1].split(b"\r\n")[0]))
    return Answer(int(head.split()[1]), head, body)


async def ask(port: int, request: bytes) -> bytes:
    """One exchange. Raises RefusedError, and OSError when nothing listens."""
    async with connected(port) as connection:
        return await exchange(connection, request)


async def closed_loop(port: int, requests: Iterable[bytes], seconds: float, connections: int) -> Found:
    """Each of the requests once, or as many as `seconds` allow. Raises RefusedError at the first answer but 200."""
    start = time.perf_counter()
    latencies: list[float] = []
    waiting = iter(requests)  # shared by the connections

    async def converse() -> None:
        async with connected(port) as connection:
            while (sent := time.perf_counter()) < start + seconds and (request := next(waiting, None)):
                await exchange(connection, request)
                latencies.append(time.perf_counter() - sent)

    await asyncio.gather(*(converse() for _ in range(connections)))
    return summary(latencies, failed=0, elapsed=time.perf_counter() - start), {"200": latencies}


async def open_loop(port: int, request: bytes, seconds: float, rate: float, seed: int = 0) -> Found:
    """A request without an answer PATIENCE_S after the last one was due counts as a timeout."""
    latencies: dict[str, list[float]] = {"200": [], "503": []}
    counted: Counter[str] = Counter()
    async with AsyncExitStack() as connections:
        idle: list[Connection] = []

        async def one(due: float) -> None:
            while idle and idle[-1][0].at_eof():  # the server has closed it
                idle.pop()[1].close()
            connection = idle.pop() if idle else await connections.enter_async_context(connected(port))
            answer = await answered(connection, request)
            counted[str(answer.status)] += 1
            latencies.setdefault(str(answer.status), []).append(time.perf_counter() - due)
            if b"connection: close" in answer.head.lower():
                connection[1].close()
            else:
                idle.append(connection)

        start = time.perf_counter()
        tasks = []
        for offset in arrivals(seconds, rate, seed):
            await asyncio.sleep(start + offset - time.perf_counter())
            tasks.append(asyncio.create_task(one(start + offset)))
        await asyncio.wait(tasks, timeout=PATIENCE_S)
        elapsed = time.perf_counter() - start
        for task in tasks:
            task.cancel()
        for error in await asyncio.gather(*tasks, return_exceptions=True):
            if error is not None:
                counted["timeouts" if isinstance(error, asyncio.CancelledError) else "resets"] += 1
    good = latencies["200"]
    figures = {
        **summary(good, failed=len(tasks) - len(good), elapsed=elapsed),
        "offered": len(tasks),
        "timeouts": counted.pop("timeouts", 0),
        "resets": counted.pop("resets", 0),
        "refused": counted["503"],
        "other_statuses": counted.total() - counted["200"] - counted["503"],
    }
    return figures, latencies


def summary(latencies: list[float], *, failed: int, elapsed: float) -> dict[str, float]:
    return {
        "images": len(latencies),
        "failed": failed,
        "seconds": elapsed,
        "images_per_s": len(latencies) / elapsed,
        "p50_ms": 1000 * percentile(latencies, 0.5),
        "p99_ms": 1000 * percentile(latencies, 0.99),
        "generator_cpu_s": time.process_time(),
    }


def percentile(values: list[float], share: float) -> float:
    """NaN where there are none."""
    return sorted(values)[int(share * len(values))] if values else math.nan


def main() -> None:
    port, seconds, loop = map(json.loads, sys.argv[1:])
    request = sys.stdin.buffer.read()
    closed = "connections" in loop
    run = closed_loop(port, repeat(request), seconds, **loop) if closed else open_loop(port, request, seconds, **loop)
    figures, latencies = asyncio.run(run)
    print(json.dumps(figures))
    print(json.dumps({status: [round(1000 * each, 3) for each in seconds] for status, seconds in latencies.items()}))


if __name__ == "__main__":
    main()
