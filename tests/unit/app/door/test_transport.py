"""app/door/transport.py: how a connection ends."""

import asyncio
import weakref

import pytest

from app.door import transport as module
from app.door.transport import LingeringTransport


class Wire:
    """A transport that records the calls."""

    def __init__(self, unsent: int = 0) -> None:
        self.calls: list[str] = []
        self.get_write_buffer_size = lambda: unsent

    def __getattr__(self, name):
        return lambda *args: self.calls.append(name)

    def is_closing(self) -> bool:
        return "close" in self.calls or "abort" in self.calls


@pytest.mark.parametrize(("unsent", "limit"), [(0, "LINGER_S"), (1, "FLUSH_S")])  # who reads slowly has more time
@pytest.mark.parametrize(
    ("sending", "calls"), [(True, ["write_eof", "resume_reading", "abort"]), (False, ["close", "abort"])]
)
async def test_it_half_closes_while_the_client_sends_and_waits_a_limited_time(
    monkeypatch, sending, calls, unsent, limit
):
    monkeypatch.setattr(module, limit, 0.01)
    wire = Wire(unsent)
    transport = LingeringTransport(wire, sending=lambda: sending)
    transport.write(b"answer")
    assert not transport.is_closing()
    transport.close()
    transport.close()  # once is enough
    transport.write(b"too late")
    assert transport.is_closing()
    async with asyncio.timeout(4):  # less than the other limit
        while "abort" not in wire.calls:
            await asyncio.sleep(0.005)
    assert wire.calls == ["writelines", *calls]


async def test_writes_of_one_turn_are_sent_together():
    sent: list[bytes] = []
    wire = Wire()
    wire.writelines = lambda pieces: sent.append(b"".join(pieces))
    transport = LingeringTransport(wire, sending=lambda: False)
    transport.write(b"head, ")
    transport.write(b"body")
    assert sent == []
    await asyncio.sleep(0)
    assert sent == [b"head, body"]
    transport.write(b"more")
    transport.close()  # sends first
    assert sent == [b"head, body", b"more"]
    assert wire.calls[0] == "close"


async def test_nothing_is_written_after_a_disconnect():
    """uvloop raises then, and the event loop would log it."""
    wire = Wire()
    LingeringTransport(wire, sending=lambda: False).write(b"answer")
    wire.abort()
    await asyncio.sleep(0)
    assert wire.calls == ["abort"]


async def test_nothing_is_kept_of_a_connection_that_has_ended(monkeypatch):
    monkeypatch.setattr(module, "LINGER_S", 0.01)
    wire = Wire()
    transport = LingeringTransport(wire, sending=lambda: True)
    transport.close()
    transport.ended()
    transport.ended()
    kept = weakref.ref(transport)
    del transport
    assert kept() is None
    await asyncio.sleep(0.05)
    assert "abort" not in wire.calls


def test_a_connection_that_is_gone_is_left_alone():
    wire = Wire()
    wire.close()
    transport = LingeringTransport(wire, sending=lambda: True)
    transport.write(b"answer")
    transport.close()
    assert wire.calls == ["close"]
