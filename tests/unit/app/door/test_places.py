"""app/door/places.py: which connection ends when there are too many, or too much is unread."""

import pytest

from app.door import places as module
from app.door.places import Places


class Connection:
    def __init__(self, unsent: int = 0) -> None:
        self.unsent = unsent
        self.ended = ""

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.ended = "aborted"

    def reset(self) -> None:
        self.ended = "reset"


def ended(connections: list[Connection]) -> list[int]:
    return [number for number, connection in enumerate(connections) if connection.ended]


def test_for_a_new_connection_the_one_ends_that_is_idle_longest():
    places, connections = Places(at_work=3), [Connection() for _ in range(10)]
    for connection in connections[:6]:
        places.enter(connection)
    places.put(connections[0], "work")
    places.put(connections[1], "waiting")  # the header of a request has come
    places.put(connections[2], "work")
    places.put(connections[2], "idle")  # which is answered
    places.put(connections[3], "idle")  # a part of a header has come
    for connection in connections[6:]:
        places.enter(connection)
    assert ended(connections) == [2, 3, 4, 5]


def test_the_last_idle_ones_stay_to_send_a_header_and_of_those_that_wait_the_one_ends_that_heard_nothing_longest():
    places, connections = Places(at_work=4), [Connection() for _ in range(11)]
    for connection in connections[:8]:
        places.enter(connection)
        places.put(connection, "waiting")
    places.put(connections[0], "waiting")  # more of its body has come
    for connection in connections[8:]:
        places.enter(connection)
    assert ended(connections) == [1, 2, 8]


def test_a_new_connection_ends_if_all_are_at_work():
    places, connections = Places(at_work=1), [Connection() for _ in range(2)]
    for connection in connections:
        places.enter(connection)
        places.put(connection, "work")
        assert places.crowded
    places.enter(late := Connection())
    assert (ended(connections), late.ended) == ([], "aborted")
    for connection in connections:
        places.leave(connection)
    assert not places.crowded


@pytest.fixture
def now(monkeypatch):
    """Sets the time."""
    monkeypatch.setattr(module.time, "monotonic", lambda: now.seconds)

    def now(seconds: float) -> None:
        now.seconds = seconds

    return now


def test_when_too_much_is_unread_the_one_ends_that_held_most_for_longest(now, monkeypatch):
    monkeypatch.setattr(module, "MAX_UNREAD_BYTES", 100)
    places = Places(at_work=9)
    long, large, read, last = connections = [Connection(unsent) for unsent in (40, 50, 10, 60)]
    for seconds, connection in enumerate(connections[:3]):
        now(float(seconds))
        places.unread(connection)
    places.read(read)
    assert ended(connections) == []
    now(10.0)
    places.unread(last)  # beside 40 bytes for 10 s and 50 bytes for 9 s
    assert (long.ended, large.ended, last.ended) == ("", "reset", "")


def test_a_reader_that_goes_on_is_kept_before_a_newer_one_that_stopped(now, monkeypatch):
    monkeypatch.setattr(module, "MAX_UNREAD_BYTES", 100)
    places, reading, stopped = Places(at_work=9), Connection(90), Connection(40)
    now(0.0)
    places.unread(reading)
    now(9.0)
    reading.unsent = 50
    places.unread(stopped)
    now(10.0)
    places.unread(Connection(20))
    assert (reading.ended, stopped.ended) == ("", "reset")


def test_one_answer_may_be_as_large_as_it_is(now, monkeypatch):
    monkeypatch.setattr(module, "MAX_UNREAD_BYTES", 100)
    now(1.0)
    places, connection = Places(at_work=9), Connection(101)
    places.unread(connection)
    assert connection.ended == ""
