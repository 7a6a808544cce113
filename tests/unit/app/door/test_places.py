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


def test_for_a_new_connection_the_one_ends_that_waited_longest():
    places, connections = Places(at_work=3), [Connection() for _ in range(10)]
    for connection in connections[:6]:
        places.enter(connection)
    places.work(connections[0])
    places.wait(connections[1])  # the header of a request has come
    places.work(connections[2])
    places.wait(connections[2])  # which is answered
    for connection in connections[6:]:
        places.enter(connection)
    assert ended(connections) == [1, 3, 4, 5]


def test_a_new_connection_ends_if_all_are_at_work():
    places, connections = Places(at_work=1), [Connection() for _ in range(2)]
    for connection in connections:
        places.enter(connection)
        places.work(connection)
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


def test_one_answer_may_be_as_large_as_it_is(now, monkeypatch):
    monkeypatch.setattr(module, "MAX_UNREAD_BYTES", 100)
    now(1.0)
    places, connection = Places(at_work=9), Connection(101)
    places.unread(connection)
    assert connection.ended == ""
