"""app/images/quarantine.py: an upload that made a worker fail is remembered, for a while and in bounds."""

import asyncio

import pytest

from app.images.quarantine import Quarantine
from app.images.upload import Upload


class Held:
    """A quarantine by bytes, in which time passes only where a test says so."""

    def __init__(self, *added: bytes) -> None:
        self.now = 0.0
        self._quarantine = Quarantine(ttl_s=60, max_items=2, clock=lambda: self.now)
        for data in added:
            self.add(data)

    def add(self, data: bytes) -> None:
        asyncio.run(self._quarantine.add(Upload(data)))

    def __contains__(self, data: bytes) -> bool:
        return asyncio.run(self._quarantine.holds(Upload(data)))


def test_it_holds_what_was_added_and_nothing_else():
    held = Held(b"abc", b"de")
    assert [data in held for data in (b"abc", b"de", b"abd", b"", b"abcd")] == [True, True, False, False, False]


def test_it_forgets_after_a_while_and_the_oldest_makes_room():
    held = Held(b"abc")
    held.now = 30
    held.add(b"def")
    held.add(b"abc")  # again: it counts from now
    held.now = 89
    assert b"abc" in held
    held.now = 91
    assert b"abc" not in held
    held = Held(b"a", b"b", b"c")
    assert [data in held for data in (b"a", b"b", b"c")] == [False, True, True]


def test_nothing_is_hashed_while_nothing_of_that_length_is_held(monkeypatch):
    monkeypatch.setattr(Upload, "sha256", lambda upload: pytest.fail("hashed"))
    assert b"abc" not in Held()
