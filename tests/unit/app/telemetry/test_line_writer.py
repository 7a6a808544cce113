"""app/telemetry/line_writer.py: what logs does not wait for what reads the log."""

import logging
import os
import re
from collections.abc import Iterator

import pytest

from app.telemetry import line_writer
from app.telemetry.line_writer import LineWriter

LINE = "x" * 999
LINES = 1000  # several times what the queue holds, which in turn is more than a pipe does


@pytest.fixture
def written(monkeypatch) -> Iterator[tuple[LineWriter, logging.Logger, int]]:
    """A writer, its logger, and the end of the pipe that it writes to."""
    monkeypatch.setattr(line_writer, "MAX_WAITING", 100)
    monkeypatch.setattr(line_writer, "END_S", 0.05)
    read_end, write_end = os.pipe()
    writer, logger = LineWriter(write_end), logging.Logger("test")
    logger.addHandler(writer)
    yield writer, logger, read_end
    os.close(read_end)  # so that nothing blocks the thread any more
    writer.close()
    writer._thread.join(5)
    assert not writer._thread.is_alive()
    os.close(write_end)


def test_lines_that_nothing_reads_are_dropped_and_counted_when_the_reader_goes_on(written):
    writer, logger, read_end = written
    for _ in range(LINES):
        logger.warning(LINE)
    assert 0 < writer.dropped < LINES
    read, said = b"", 0
    while said < writer.dropped:
        read += os.read(read_end, 65536)
        said = sum(map(int, re.findall(rb"^(\d+) lines before this one are lost", read, re.MULTILINE)))
    assert said == writer.dropped
    assert read.decode().splitlines().count(LINE) == LINES - writer.dropped
    logger.warning("as before")
    assert os.read(read_end, 65536) == b"as before\n"


def test_the_end_does_not_wait_for_a_reader(written):
    writer, logger, _ = written
    for _ in range(LINES):
        logger.warning(LINE)
    writer.close()
    assert writer._thread.is_alive()


def test_what_was_logged_before_the_end_is_written(written):
    writer, logger, read_end = written
    logger.warning("näme \udcff")
    writer.close()
    assert os.read(read_end, 65536) == "näme \\udcff\n".encode()


@pytest.mark.parametrize("non_blocking", [True, False])
def test_a_descriptor_that_another_process_made_non_blocking(written, non_blocking):
    writer, logger, read_end = written
    os.set_blocking(writer._descriptor, not non_blocking)
    long = "x" * 200_000
    logger.warning(long)
    read = b""
    while not read.endswith(b"\n"):
        read += os.read(read_end, 65536)
    assert read.decode() == long + "\n"
