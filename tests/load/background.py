"""Work that goes on beside a measurement."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
