"""lab/benchmarks/load.py, against a server of a few lines."""

import asyncio
import time
from itertools import repeat

import pytest

from lab.benchmarks import load
from tests.support.arrivals import arrivals
from tests.support.connection import post

REQUEST = post(b"picture")
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


def measured(answer, loop, *arguments):
    """What the loop found, and the requests that its server had, of which the nth is answered with `answer(n)`."""
    had = []

    async def serve(reader, writer):
        try:
            while request := await reader.read(len(REQUEST)):
                had.append(request)
                writer.write(await answer(len(had)))
        finally:
            writer.close()

    async def run():
        async with await asyncio.start_server(serve, load.HOST, 0) as server:
            figures, seconds = await loop(server.sockets[0].getsockname()[1], *arguments)
            assert len(seconds["200"]) == figures["images"]
            return figures, had

    return asyncio.run(run())


async def good(_):
    return GOOD


@pytest.mark.parametrize(
    ("loop", "requests", "load_of_it"),
    [(load.closed_loop, repeat(REQUEST), 2), (load.closed_loop, [REQUEST] * 5, 2), (load.open_loop, REQUEST, 400)],
)
def test_every_request_is_sent_whole_answered_and_counted(loop, requests, load_of_it):
    figures, had = measured(good, loop, requests, 0.05, load_of_it)
    assert figures["images"] == len(had) > 0
    assert figures["failed"] == 0
    assert set(had) == {REQUEST}
    assert 0 < figures["p50_ms"] <= figures["p99_ms"]


def test_a_closed_loop_ends_at_a_refusal():
    async def busy(_):
        return BUSY

    with pytest.raises(load.RefusedError, match="503"):
        measured(busy, load.closed_loop, repeat(REQUEST), 0.05, 2)


def test_an_open_loop_times_from_when_a_request_was_due():
    """The server blocks the loop that also sends, so each request due meanwhile has waited since it was due."""
    stop = 0.2
    due = list(arrivals(0.1, 400))

    async def stall(number):
        if number == 1:
            time.sleep(stop)
        return GOOD

    figures, _ = measured(stall, load.open_loop, REQUEST, 0.1, 400)
    median = due[len(due) // 2]
    assert figures["p50_ms"] >= 1000 * (stop - median)


def test_an_open_loop_counts_every_other_outcome(monkeypatch):
    monkeypatch.setattr(load, "PATIENCE_S", 0.05)
    due = list(arrivals(0.05, 400))

    async def fickle(number):
        match number:
            case 1:
                return BUSY
            case 2:
                await asyncio.Event().wait()
            case 3:
                raise ConnectionError
            case 4:
                return b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"
        return GOOD

    figures, _ = measured(fickle, load.open_loop, REQUEST, 0.05, 400)
    assert (figures["images"], figures["failed"], figures["offered"]) == (len(due) - 4, 4, len(due))
    assert [figures[name] for name in ("refused", "timeouts", "resets", "other_statuses")] == [1, 1, 1, 1]
