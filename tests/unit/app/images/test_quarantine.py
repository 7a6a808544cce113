"""app/images/quarantine.py: an upload that made a worker fail is remembered, for a while and in bounds."""

import asyncio

import pytest

from app.images.quarantine import Quarantine
from app.images.upload import Upload


def held(*, ttl_s: float = 60, max_items: int = 10, added: list[bytes], asked: list[bytes]) -> list[bool]:
    async def scenario() -> list[bool]:
        quarantine = Quarantine(ttl_s=ttl_s, max_items=max_items)
        for data in added:
            await quarantine.add(Upload(data))
        return [await quarantine.holds(Upload(data)) for data in asked]

    return asyncio.run(scenario())


def test_it_holds_what_was_added_and_nothing_else():
    assert held(added=[b"abc", b"de"], asked=[b"abc", b"de", b"abd", b"", b"abcd"]) == [True, True, False, False, False]


def test_it_forgets_after_a_while():
    now = 1000.0

    async def scenario() -> None:
        nonlocal now
        quarantine = Quarantine(ttl_s=60, max_items=10, clock=lambda: now)
        await quarantine.add(Upload(b"abc"))
        now += 30
        await quarantine.add(Upload(b"def"))
        await quarantine.add(Upload(b"abc"))  # again: it counts from now
        now += 59
        assert await quarantine.holds(Upload(b"abc"))
        now += 2
        assert not await quarantine.holds(Upload(b"abc"))

    asyncio.run(scenario())


def test_the_oldest_makes_room():
    assert held(max_items=2, added=[b"a", b"b", b"c"], asked=[b"a", b"b", b"c"]) == [False, True, True]


def test_nothing_is_hashed_while_nothing_of_that_length_is_held(monkeypatch):
    monkeypatch.setattr(Upload, "sha256", lambda upload: pytest.fail("hashed"))
    assert held(added=[], asked=[b"abc"]) == [False]
