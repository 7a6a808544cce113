"""app/telemetry/start.py: a start that is quick says nothing."""

import logging

from app.telemetry.start import start_log, told_if_slow
from tests.support.processes import eventually


def test_a_quick_start_says_nothing(caplog):
    caplog.set_level(logging.INFO)
    with told_if_slow(60):
        start_log.info("reading")
    assert caplog.messages == []
    start_log.info("after it")
    assert caplog.messages == ["after it"]


def test_a_slow_start_says_what_it_does(caplog):
    caplog.set_level(logging.INFO)
    with told_if_slow(0.05):
        start_log.info("reading %s", "a")
        assert caplog.messages == []
        eventually(lambda: caplog.messages == ["reading a"])
        start_log.info("opening")
        assert caplog.messages == ["reading a", "opening"]
        read, opened = caplog.records
        assert opened.created - read.created >= 0.04  # each has its own time
