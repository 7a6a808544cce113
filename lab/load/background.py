"""Work that goes on beside a measurement."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import httpx

from tests.support.server import Server

PROBE_TIMEOUT_S = 5.0


@contextmanager
def repeated(work: Callable[[], object], *, every_s: float) -> Iterator[None]:
    """In a thread, at least once, until the block is left. The pause between two calls is `every_s`."""
    over = threading.Event()

    def loop() -> None:
        work()
        while not over.wait(every_s):
            work()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def probed(server: Server, path: str, *, every_s: float) -> Iterator[list[float]]:
    """The seconds of each answer of a path that is asked for again and again; PROBE_TIMEOUT_S where it was not 200."""
    seconds: list[float] = []
    with httpx.Client(base_url=server.url, timeout=PROBE_TIMEOUT_S) as client:

        def probe() -> None:
            start, good = time.perf_counter(), False
            with suppress(httpx.TransportError):
                good = client.get(path).is_success
            seconds.append(time.perf_counter() - start if good else PROBE_TIMEOUT_S)

        with repeated(probe, every_s=every_s):
            yield seconds
