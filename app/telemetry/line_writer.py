"""Writes log lines to a descriptor from a thread of its own.

A pipe whose reader has stopped (a paused terminal, a collector that is stuck) blocks who writes to it. On the event
loop that would be every request, and the probes.
"""

import logging
import os
import select
import threading
from contextlib import suppress
from queue import SimpleQueue

MAX_WAITING = 10_000  # lines; most have 200 bytes
END_S = 1.0  # at the exit, for lines that still wait


class LineWriter(logging.Handler):
    """Never waits. Above MAX_WAITING lines it drops them, and says how many when the reader goes on."""

    def __init__(self, descriptor: int, *, encoding: str = "utf-8") -> None:
        super().__init__()
        self._descriptor = descriptor
        self._encoding = encoding
        self._lines: SimpleQueue[str | None] = SimpleQueue()  # unlike Queue, a signal's handler may put into it too
        self._unsaid = 0  # of `dropped`
        self.dropped = 0  # lines since the start
        self._thread = threading.Thread(target=self._write_lines, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        if self._lines.qsize() < MAX_WAITING:
            self._lines.put(self.format(record))  # here, where it is known whose request it is
        else:
            self.dropped += 1
            self._unsaid += 1

    def close(self) -> None:
        """Waits for at most END_S. `logging` calls it when the interpreter ends."""
        self._lines.put(None)
        self._thread.join(END_S)
        super().close()

    def _write_lines(self) -> None:
        while (line := self._lines.get()) is not None:
            self._write(line)
            if self._unsaid and self._lines.empty():
                unsaid, self._unsaid = self._unsaid, 0
                said = f"{unsaid} lines before this one are lost: nothing read the log"
                self._write(self.format(logging.LogRecord(__name__, logging.WARNING, "", 0, said, None, None)))

    def _write(self, line: str) -> None:
        unwritten = f"{line}\n".encode(self._encoding, "backslashreplace")
        with suppress(OSError):  # the reader is gone, or the disk is full
            while unwritten:
                try:
                    unwritten = unwritten[os.write(self._descriptor, unwritten) :]
                except BlockingIOError:  # another process has made it non-blocking for all
                    select.select([], [self._descriptor], [])
