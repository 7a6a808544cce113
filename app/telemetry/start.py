"""What a start is doing: lines that appear only if it takes long."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

start_log = logging.getLogger("app.start")  # a line from each part that may take long, before it begins

PATIENCE_S = 2.0


@contextmanager
def told_if_slow(patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Lines of `start_log` wait for `patience_s`, and are dropped if the block ends before. Then those that wait are
    written, each with the time at which it came, and further ones at once.
    """
    waiting = _Waiting()
    timer = threading.Timer(patience_s, waiting.end)
    timer.daemon = True
    start_log.addFilter(waiting)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        start_log.removeFilter(waiting)


class _Waiting(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._records: list[logging.LogRecord] | None = []  # None: they wait no more

    def filter(self, record: logging.LogRecord) -> bool:
        with self._lock:
            if self._records is None:
                return True
            self._records.append(record)
            return False

    def end(self) -> None:
        with self._lock:
            records, self._records = self._records or [], None
            for record in records:
                start_log.callHandlers(record)
