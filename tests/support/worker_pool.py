"""Real processes that decode, for as long as a block runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from app.images.fork_server import Work
from app.images.pool import WorkerPool
from app.images.turns import Turns


@contextmanager
def started(work: Work, **options: Any) -> Iterator[WorkerPool]:
    """Two workers, unless a test says otherwise."""
    defaults = {
        "turns": Turns(workers=options.pop("workers", 2), max_large_pixels=5_000_000),
        "max_pixels": 50_000_000,
        "max_answer_bytes": 2**25,
        "unpack": bytes,
    }
    pool = WorkerPool(work=work, **{**defaults, **options})
    try:
        pool.start()
        yield pool
    finally:
        pool.stop()
