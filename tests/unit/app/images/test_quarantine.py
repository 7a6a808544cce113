"""app/images/quarantine.py: an upload that made a worker fail is remembered, for a while and in bounds."""

import pytest

from app.images.quarantine import Quarantine
from app.images.upload import Upload


class Held(Quarantine):
    """Two uploads at most, for a minute of a time that passes only where a test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(ttl_s=60, max_items=2, clock=lambda: self.now)

    async def of(self, *uploads: bytes) -> list[bool]:
        return [await self.holds(Upload(data)) for data in uploads]


async def test_it_holds_what_was_added_and_forgets_the_oldest():
    held = Held()
    for added in (b"abc", b"de"):
        await held.add(Upload(added))
    assert await held.of(b"abc", b"de", b"abd", b"", b"abcd") == [True, True, False, False, False]
    await held.add(Upload(b"f"))
    assert await held.of(b"abc", b"de", b"f") == [False, True, True]


async def test_it_forgets_a_while_after_the_last_time():
    held = Held()
    await held.add(Upload(b"abc"))
    held.now = 30
    await held.add(Upload(b"abc"))
    held.now = 89
    assert await held.of(b"abc") == [True]
    held.now = 91
    assert await held.of(b"abc") == [False]


async def test_nothing_is_hashed_while_nothing_of_that_length_is_held(monkeypatch):
    monkeypatch.setattr(Upload, "sha256", lambda upload: pytest.fail("hashed"))
    assert await Held().of(b"abc") == [False]
