"""One line for each event, as text for people or as JSON for programs, with the id of its request.

Nothing that a client sends can end a line or begin another.
"""

import atexit
import json
import logging
import re
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any, Literal

from opentelemetry import trace

from app.telemetry.request_state import in_work

access_log = logging.getLogger("app.access")  # one line for every request

MAX_WAITING = 10_000  # lines; most have 200 bytes
WRITTEN_EVERY_S = 0.02  # those of many requests at once: a thread that is woken for each interrupts the event loop
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")  # all but tab and newline


def configure(format: Literal["text", "json"], level: str) -> None:
    """Send the lines of every logger, uvicorn's too, to standard error."""
    handler = LineWriter()
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler])
    for reader in ("opentelemetry.trace", "opentelemetry.baggage", "python_multipart"):  # warn of what clients send
        logging.getLogger(reader).setLevel(logging.ERROR)
    logging._srcfile = None  # what no line says costs time in each (Python's Logging HOWTO, "Optimization")
    for fact in ("logThreads", "logProcesses", "logMultiprocessing", "logAsyncioTasks"):
        setattr(logging, fact, False)
    handler.start()
    atexit.register(handler.finish)


def dropped_lines() -> int:
    """Lines that were not written since the start, because nothing read them."""
    return sum(handler.dropped for handler in logging.getLogger().handlers if isinstance(handler, LineWriter))


class LineWriter(logging.Handler):
    """Formats a line where it is known whose request it is, for a thread that writes. A pipe whose reader has stopped
    blocks that thread alone: above MAX_WAITING lines, further ones are dropped and counted.
    """

    def __init__(self) -> None:
        super().__init__()
        self.dropped = 0  # lines since the start
        self._lines: SimpleQueue[str | None] = SimpleQueue()  # unlike Queue, a signal's handler may put into it too
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Returns when all lines are written."""
        self._lines.put(None)
        self._thread.join()

    def emit(self, record: logging.LogRecord) -> None:
        if self._lines.qsize() < MAX_WAITING:
            self._lines.put(self.format(record))
        else:
            self.dropped += 1

    def _write(self) -> None:
        lines: list[str | None] = [""]
        while lines[-1] is not None:
            lines = [self._lines.get(), *(self._lines.get() for _ in range(self._lines.qsize()))]
            with suppress(OSError, ValueError):  # nothing can be said about an output that is closed
                sys.stderr.writelines(f"{line}\n" for line in lines if line is not None)
                sys.stderr.flush()
            time.sleep(WRITTEN_EVERY_S)


class JsonFormatter(logging.Formatter):
    """One JSON object on a line: time, level, logger, message, then any request, trace, fields and traceback."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_known(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)  # ASCII only, so no character can be read as the end of a line


class TextFormatter(logging.Formatter):
    """One line, with the lines of a traceback indented below it."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname} {record.name}: {record.getMessage()}"
        line += "".join(f" {name}={value}" for name, value in _known(record).items())
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        line = CONTROLS.sub(lambda control: f"\\x{ord(control[0]):02x}", line)
        return line.replace("\n", "\n    ")


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _known(record: logging.LogRecord) -> dict[str, Any]:
    """The request, its trace, and what `extra={"fields": ...}` says."""
    request = in_work.get()
    known: dict[str, Any] = {"request_id": request.request_id} if request and request.request_id else {}
    span = trace.get_current_span().get_span_context()
    if span.is_valid:
        known |= {"trace_id": trace.format_trace_id(span.trace_id), "span_id": trace.format_span_id(span.span_id)}
    return known | getattr(record, "fields", {})
