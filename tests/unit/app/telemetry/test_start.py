"""app/telemetry/start.py: a start that is quick says nothing."""

import logging
import time
from unittest.mock import patch

from app.telemetry.start import start_log, told_if_slow


def test_a_quick_start_says_nothing(caplog):
    caplog.set_level(logging.INFO)
    with told_if_slow(60):
        start_log.info("reading")
    assert caplog.messages == []
    start_log.info("after it")
    assert caplog.messages == ["after it"]


def test_a_slow_start_says_what_it_does(caplog):
    caplog.set_level(logging.INFO)
    with patch("threading.Timer") as timer, told_if_slow(60):
        timer.return_value.start.assert_called_once_with()
        start_log.info("reading %s", "a")
        assert caplog.messages == []
        moment = time.time()
        seconds, end = timer.call_args.args
        end()
        assert (seconds, caplog.messages) == (60, ["reading a"])
        start_log.info("opening")
        assert caplog.messages == ["reading a", "opening"]
        read, opened = caplog.records
        assert read.created <= moment <= opened.created  # each has its own time
