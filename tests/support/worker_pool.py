"""Real processes that decode, for as long as a block runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from app.images.fork_server import Work
from app.images.lanes import Lanes
from app.images.pool import WorkerPool


def lanes(**options: Any) -> Lanes:
    return Lanes(**{"max_large_waiting": 100, "max_wait_s": 60.0, **options})


@contextmanager
def started(work: Work, **options: Any) -> Iterator[WorkerPool]:
    """Two workers, all of which may decode small images, unless a test says otherwise."""
    workers = options.pop("workers", 2)
    small, pixels = options.pop("max_small", workers), options.pop("max_pixels_in_work", 5_000_000)
    defaults = {
        "lanes": lanes(workers=workers, max_small=small, max_pixels_in_work=pixels),
        "max_answer_bytes": 2**25,
        "memory_bytes": 2**29,
        "timeout_s": 20.0,
        "unpack": bytes,
    }
    pool = WorkerPool(work=work, **{**defaults, **options})
    pool.start()
    try:
        yield pool
    finally:
        pool.stop()
