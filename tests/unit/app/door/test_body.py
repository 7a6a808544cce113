import asyncio
import gc
import weakref
from collections.abc import Callable
from contextlib import suppress

import pytest

from app.door import body as module
from app.door.body import Bodies, Body
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


async def test_of_bodies_that_are_too_large_together_the_newest_is_refused(body_of):
    limits = bodies(max_bodies_bytes=150)
    first = await whole(body_of(limits, part(100, more=False), content_length="100"))
    second = body_of(limits, part(40, more=True), part(20, more=True), part(20, more=False), content_length="80")
    with pytest.raises(Overloaded):
        await whole(second)
    with pytest.raises(Overloaded):  # also for the piece that is there already, and for each that comes
        await second.receive()
    second.release()
    assert limits.bytes_in_work == 100
    first.release()
    assert limits.bytes_in_work == 0
    assert (await whole(body_of(limits, part(100, more=False), content_length="100"))).finished


async def test_a_body_that_an_idle_service_has_no_room_for_is_too_large(body_of, request_of):
    """With 503 its client would send it again, for ever."""
    limits = bodies(max_bodies_bytes=80)
    limits.check(request_of(content_length="80"))
    (await whole(body_of(limits, part(80, more=False), **CHUNKED))).release()
    with pytest.raises(BodyTooLarge, match="80 bytes, the most that VIT_MAX_BODIES_BYTES"):
        limits.check(request_of(content_length="81"))


@pytest.mark.parametrize("after", [[part(9, more=True)] * 3, [part(9, more=True), LEFT], [part(9, more=False)]])
async def test_the_rest_of_a_body_is_dropped_for_a_limited_time_and_counts_no_longer(body_of, monkeypatch, after):
    monkeypatch.setattr(module, "LINGER_S", 0.05)
    limits = bodies()
    body = body_of(limits, part(50, more=True), *after, **CHUNKED)
    await body.receive()
    async with asyncio.timeout(4):
        await body.drop_rest()
    assert limits.bytes_in_work == 0


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
