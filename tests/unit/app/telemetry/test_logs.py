import json
import logging
import subprocess
import sys
from contextlib import contextmanager
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser

from app.telemetry import logs
from app.telemetry.logs import JsonFormatter, LineWriter, TextFormatter
from app.telemetry.request_state import RequestState, in_work

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def record(message: str, *args: object, **extra: object) -> logging.LogRecord:
    fields = {"name": "app.test", "levelname": "WARNING", "msg": message, "args": args, "created": 1_700_000_000.25}
    return logging.makeLogRecord({**fields, **extra})


@contextmanager
def request(state: RequestState):
    token = in_work.set(state)
    yield
    in_work.reset(token)


def as_json(line: logging.LogRecord) -> dict:
    return json.loads(JsonFormatter().format(line))


def test_json_and_text_say_what_when_and_where():
    line = record("took %d", 3, fields={"route": "/classify"})
    assert TextFormatter().format(line) == "2023-11-14T22:13:20.250+00:00 WARNING app.test: took 3 route=/classify"
    assert as_json(line) == {
        "time": "2023-11-14T22:13:20.250+00:00",
        "level": "warning",
        "logger": "app.test",
        "message": "took 3",
        "route": "/classify",
    }


def test_both_name_the_request():
    with request(RequestState(request_id="abc")):
        assert as_json(record("x"))["request_id"] == "abc"
        assert "request_id=abc" in TextFormatter().format(record("x"))
    with request(RequestState()):  # it has none yet
        assert "request_id" not in as_json(record("x"))


def failed(message: str) -> logging.LogRecord:
    try:
        raise ValueError(message)
    except ValueError:
        return record("it failed", exc_info=sys.exc_info())


def test_a_traceback_stays_with_its_line():
    assert "ValueError: why" in as_json(failed("why"))["exception"]
    first, *rest = TextFormatter().format(failed("why")).split("\n")
    assert first.endswith("it failed")
    assert all(line.startswith("    ") for line in rest)


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
@given(text=st.text() | st.sampled_from(["a\nb", "a\r\nb", "a\x1b[2Jb", "a\u2028b", "a\x85b"]))
def test_no_client_can_start_a_line(formatter, text):
    """Whatever a reader takes for the end of a line, the next line is indented, or there is none."""
    for line in (record("%s", text), record("x", fields={"f": text}), failed(text)):
        with request(RequestState(request_id=text)):
            _, *rest = formatter.format(line).splitlines()
        assert all(line.startswith("    ") for line in rest)


def test_no_library_warns_of_what_a_client_sent(caplog, monkeypatch):
    monkeypatch.setattr(LineWriter, "start", Mock())
    monkeypatch.setattr(logs, "atexit", Mock())
    logs.configure("text", "info")
    fields = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "any text", "baggage": "any text"}
    for reader in (TraceContextTextMapPropagator(), W3CBaggagePropagator()):
        reader.extract(fields)
    with pytest.raises(MultipartParseError):
        MultipartParser(b"b").write(b"no form")
    assert caplog.records == []


def test_lines_that_nothing_reads_are_dropped_and_counted(monkeypatch, capsys):
    monkeypatch.setattr(logs, "MAX_WAITING", 2)
    handler, logger = LineWriter(), logging.Logger("test")
    logger.addHandler(handler)
    for number in range(5):
        logger.warning("%d", number)
    assert handler.dropped == 3
    handler.start()
    handler.finish()
    assert capsys.readouterr().err == "0\n1\n"


LOGGING = """
import logging, sys
from app.telemetry.logs import configure

configure("text", "info")
for _ in range(9_000):
    logging.info("x" * 999)
print("logged", flush=True)
"""


def test_a_log_that_nothing_reads_holds_up_nobody_and_is_written_once_something_does():
    """The lines are many times what a pipe holds."""
    with subprocess.Popen([sys.executable, "-c", LOGGING], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"logged\n"
        assert len(process.stderr.readlines()) == 9_000
    assert process.returncode == 0
