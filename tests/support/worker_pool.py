"""Real processes that decode, for as long as a block runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from app.images.fork_server import Work
from app.images.headers import size_in_header
from app.images.pool import Question, WorkerPool
from app.images.preparer import IMAGE_AND_THUMBNAIL
from app.images.turns import Turns
from app.images.upload import Upload


@contextmanager
def started(work: Work, *, workers: int = 2) -> Iterator[WorkerPool]:
    pool = WorkerPool(work=work, turns=Turns(workers=workers, max_large_pixels=5_000_000), max_pixels=50_000_000)
    try:
        pool.start()
        yield pool
    finally:
        pool.stop()


def about(data: bytes, **options: Any) -> Question[Any]:
    """A question that is answered with plain bytes, unless a test says otherwise."""
    upload = Upload([data])
    width, height = size_in_header(upload.read)
    defaults = {"kind": IMAGE_AND_THUMBNAIL, "pixels": width * height, "max_answer_bytes": 2**25, "unpack": bytes}
    return Question(upload=upload, **{**defaults, **options})
