import asyncio
import gc
import weakref
from collections.abc import Callable
from contextlib import nullcontext, suppress
from itertools import accumulate

import pytest

from app.door import body as module
from app.door.body import AHEAD_BYTES, Bodies, Body
from app.errors import BodyTooLarge, Overloaded, SlowRequest, UnsupportedEncoding
from app.settings import Settings
from app.telemetry.stages import Stages

CHUNKED = {"transfer_encoding": "chunked"}
LEFT = {"type": "http.disconnect"}


def bodies(**limits: float) -> Bodies:
    return Bodies(settings=Settings(**{"max_upload_bytes": 100, "max_bodies_bytes": 1000, **limits}))


def part(size: int, *, more: bool) -> dict:
    return {"type": "http.request", "body": bytes(size), "more_body": more}


@pytest.fixture
def body_of(request_of) -> Callable[..., Body]:
    """A body of these messages, after which the client stalls."""

    def made(limits: Bodies, *messages: dict, **headers: str) -> Body:
        waiting = list(messages)

        async def receive():
            return waiting.pop(0) if waiting else await asyncio.Event().wait()

        return Body(limits, request_of(**headers), receive, stages=Stages(observe=lambda *_: None))

    return made


async def whole(body: Body) -> Body:
    while (await body.receive()).get("more_body"):
        pass
    return body


@pytest.mark.parametrize("length", ["101", "99999999999999999999"])
def test_a_declared_length_over_the_limit(request_of, length):
    bodies().check(request_of(content_length="100"))
    with pytest.raises(BodyTooLarge, match="100 bytes"):
        bodies().check(request_of(content_length=length))


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate, gzip", "identity, gzip", ""])
def test_an_encoded_body_is_refused(request_of, encoding):
    with pytest.raises(UnsupportedEncoding) as refused:
        bodies().check(request_of(content_encoding=encoding))
    assert refused.value.headers == {"Accept-Encoding": "identity"}


async def test_the_limit_is_allowed_and_one_byte_more_is_refused_without_a_declared_length(body_of):
    assert (await whole(body_of(bodies(), part(60, more=True), part(40, more=False), **CHUNKED))).finished
    with pytest.raises(BodyTooLarge):
        await whole(body_of(bodies(), part(60, more=True), part(41, more=False), **CHUNKED))


async def test_a_refused_body_is_freed_at_once(body_of):
    """And not when Python's collector looks for cycles, which it hardly does for a few large bodies."""
    body = body_of(bodies(), part(101, more=True), **CHUNKED)
    freed = weakref.ref(body)
    gc.disable()
    try:
        with suppress(BodyTooLarge):
            await whole(body)
        del body
        assert freed() is None
    finally:
        gc.enable()


async def test_slow_bytes_do_not_extend_the_time(request_of):
    """test_door.py has a body that stalls."""

    async def receive():
        await asyncio.sleep(0.02)
        return part(1, more=True)

    unread = Stages(observe=lambda *_: None)
    with pytest.raises(SlowRequest):
        await whole(Body(bodies(receive_timeout_s=0.2), request_of(content_length="90"), receive, stages=unread))


async def test_the_wait_for_an_answer_has_no_limit(body_of):
    body = body_of(bodies(receive_timeout_s=0.01), part(5, more=False), content_length="5")
    await body.receive()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(body.receive(), 0.1)


@pytest.mark.parametrize(
    ("sizes", "ahead"),
    [
        ([100], 100),
        ([1] * 100, 100),
        ([AHEAD_BYTES, 100], AHEAD_BYTES),
        ([AHEAD_BYTES - 1, 100, 100], AHEAD_BYTES + 99),
    ],
)
async def test_bytes_that_have_arrived_are_received_once_and_in_order(body_of, sizes, ahead):
    content = bytes(i % 251 for i in range(sum(sizes)))
    messages = [
        {"type": "http.request", "body": content[end - size : end], "more_body": end < len(content)}
        for size, end in zip(sizes, accumulate(sizes), strict=True)
    ]
    limits = bodies(max_upload_bytes=10**6, max_bodies_bytes=10**6)
    body = body_of(limits, *messages, content_length=str(len(content)))
    await body.arrive()
    assert limits.bytes_in_work == ahead
    received = [await body.receive()]
    assert len(received[0]["body"]) == ahead
    while received[-1]["more_body"]:
        received.append(await body.receive())
    assert b"".join(message["body"] for message in received) == content
    assert body.finished
    body.release()
    assert limits.bytes_in_work == 0


async def test_a_disconnect_while_the_body_arrives_is_passed_on(body_of):
    body = body_of(bodies(), part(5, more=True), LEFT, LEFT, content_length="10")
    await body.arrive()
    assert [await body.receive(), await body.receive()] == [part(5, more=True), LEFT]


async def test_all_bodies_together_are_bounded_until_they_are_released(body_of):
    limits = bodies(max_bodies_bytes=150)
    first = await whole(body_of(limits, part(100, more=False), content_length="100"))
    with pytest.raises(Overloaded):
        await whole(body_of(limits, part(60, more=False), content_length="60"))
    assert limits.bytes_in_work == 100
    first.release()
    assert limits.bytes_in_work == 0


async def test_when_bodies_fill_their_memory_the_one_is_refused_that_held_most_for_longest(body_of):
    """Otherwise one client that holds bodies back just below the limit would lock out all others."""
    limits = bodies(max_bodies_bytes=150)
    held = [body_of(limits, part(size, more=True), content_length="100") for size in (99, 30, 20)]
    waiting = [asyncio.create_task(whole(body)) for body in held]
    await asyncio.sleep(0.01)
    assert (await whole(body_of(limits, part(50, more=False), content_length="50"))).finished
    with pytest.raises(Overloaded):
        await waiting[0]
    assert limits.bytes_in_work == 30 + 20 + 50
    held[1].refuse(Overloaded())  # also if it is not waiting yet or any more
    waiting[1].cancel()
    await asyncio.wait(waiting[1:2])
    with pytest.raises(Overloaded):
        await held[1].receive()
    waiting[2].cancel()


@pytest.mark.parametrize(("size", "refused"), [(10, False), (11, True)])
async def test_large_bodies_leave_room_for_small_ones(body_of, monkeypatch, size, refused):
    monkeypatch.setattr(module, "SMALL_BYTES", 10)
    limits = bodies(max_bodies_bytes=100)
    await whole(body_of(limits, part(75, more=False), content_length="75"))  # complete, and still in work
    with pytest.raises(Overloaded) if refused else nullcontext():
        await whole(body_of(limits, part(size, more=False), content_length=str(size)))


@pytest.mark.parametrize(("together", "most"), [(100, 75), (12, 10), (8, 8)])
async def test_a_body_that_an_idle_service_has_no_room_for_is_too_large(
    body_of, request_of, monkeypatch, together, most
):
    """With 503 its client would send it again, for ever."""
    monkeypatch.setattr(module, "SMALL_BYTES", 10)
    limits = bodies(max_bodies_bytes=together)
    limits.check(request_of(content_length=str(most)))
    (await whole(body_of(limits, part(most, more=False), **CHUNKED))).release()
    with pytest.raises(BodyTooLarge, match=f"{most} bytes, the most that VIT_MAX_BODIES_BYTES"):
        limits.check(request_of(content_length=str(most + 1)))
    with pytest.raises(BodyTooLarge):
        await whole(body_of(limits, part(most + 1, more=False), **CHUNKED))


async def test_when_large_bodies_exceed_their_share_a_large_one_is_refused(body_of, monkeypatch):
    monkeypatch.setattr(module, "SMALL_BYTES", 10)
    limits = bodies(max_bodies_bytes=100)
    small = asyncio.create_task(whole(body_of(limits, part(10, more=True), content_length="100")))
    await asyncio.sleep(0.05)
    with pytest.raises(Overloaded):
        await whole(body_of(limits, part(70, more=False), content_length="100"))
    assert limits.bytes_in_work == 10
    small.cancel()


@pytest.mark.parametrize(
    ("headers", "finished"),
    [
        ({}, True),
        ({"content_length": "0"}, True),
        ({"content_length": "1"}, False),
        ({"transfer_encoding": "x"}, False),
    ],
)
async def test_a_request_without_a_body_is_finished_from_the_start(body_of, headers, finished):
    assert body_of(bodies(), **headers).finished == finished
