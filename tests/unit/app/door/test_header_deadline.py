"""app/door/header.py: how long a client says it will wait."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.door.header import deadline
from app.errors import InvalidParameter


@pytest.fixture
def now(monkeypatch) -> float:
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    return 1000.0


@pytest.mark.parametrize(("asked", "seconds"), [("5", 5), ("0.25", 0.25), ("1e-3", 0.001), ("99", 30), ("inf", 30)])
def test_what_is_asked_for_up_to_the_setting(request_of, now, asked, seconds):
    assert deadline(request_of(x_request_timeout=asked), max_s=30) == now + seconds


def test_without_a_word_the_setting(request_of, now):
    assert deadline(request_of(), max_s=30) == now + 30


@pytest.mark.parametrize("asked", ["", "0", "-1", "nan", "-inf", "soon", "1,5", "5s"])
def test_nonsense_is_refused(request_of, asked):
    with pytest.raises(InvalidParameter):
        deadline(request_of(x_request_timeout=asked), max_s=30)


@given(asked=st.text(st.characters(max_codepoint=255)) | st.floats().map(str))
def test_it_is_never_past_nor_too_far(request_of, asked):
    before = time.monotonic()
    try:
        until = deadline(request_of(x_request_timeout=asked), max_s=30)
    except InvalidParameter:
        return
    assert before <= until <= time.monotonic() + 30
