import asyncio
import gc
import weakref
from collections.abc import Callable
from contextlib import suppress

import pytest
from starlette.datastructures import Headers

from app.errors import BodyTooLarge, MalformedRequest, Overloaded, SlowRequest, UnsupportedEncoding
from app.http import body as module
from app.http.body import Body, BodyLimits
from app.settings import Settings
from app.telemetry.request_state import RequestState
from app.telemetry.stages import Stages

CHUNKED = {"transfer_encoding": "chunked"}
LEFT = {"type": "http.disconnect"}
ANSWER = [
    {"type": "http.response.start", "status": 400, "headers": []},
    {"type": "http.response.body", "body": b"no"},
]


@pytest.fixture
def limits_of(monkeypatch) -> Callable[..., BodyLimits]:
    """Limits on a machine with so many bytes of memory."""

    def made(*, memory: int = 4000, **limits: float) -> BodyLimits:
        monkeypatch.setattr(module, "allowed_memory", lambda: memory)
        return BodyLimits(settings=Settings(**{"max_upload_bytes": 100, **limits}))

    return made


def part(size: int, *, more: bool) -> dict:
    return {"type": "http.request", "body": bytes(size), "more_body": more}


@pytest.fixture
def body_of() -> Callable[..., Body]:
    """A body of these messages, after which the client stalls. What is answered goes to `sent`."""

    def made(limits: BodyLimits, *messages: dict, sent: list | None = None, **headers: str) -> Body:
        waiting, answered = list(messages), [] if sent is None else sent

        async def receive():
            return waiting.pop(0) if waiting else await asyncio.Event().wait()

        async def send(message):
            answered.append(message)

        fields = Headers({name.replace("_", "-"): value for name, value in headers.items()})
        state = RequestState()
        state.stages = Stages(observe=lambda *_: None)
        return Body(limits=limits, headers=fields, receive=receive, send=send, state=state)

    return made


async def whole(body: Body) -> Body:
    while (await body.receive()).get("more_body"):
        pass
    return body


@pytest.mark.parametrize("length", ["101", "99999999999999999999"])
def test_a_declared_length_over_the_limit(limits_of, length):
    limits_of().check_header({"Content-Length": "100"})
    with pytest.raises(BodyTooLarge, match="100 bytes"):
        limits_of().check_header({"Content-Length": length})


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity, gzip", ""])
def test_an_encoded_body_is_refused(limits_of, encoding):
    with pytest.raises(UnsupportedEncoding) as refused:
        limits_of().check_header({"Content-Encoding": encoding})
    assert refused.value.headers == {"Accept-Encoding": "identity"}


async def test_the_limit_is_allowed_and_one_byte_more_is_refused_without_a_declared_length(limits_of, body_of):
    await whole(body_of(limits_of(), part(60, more=True), part(40, more=False), **CHUNKED))
    with pytest.raises(BodyTooLarge):
        await whole(body_of(limits_of(), part(60, more=True), part(41, more=False), **CHUNKED))


async def test_a_refused_body_is_freed_at_once(limits_of, body_of):
    """And not when Python's collector looks for cycles, which it hardly does for a few large bodies."""
    body = body_of(limits_of(), part(101, more=True), **CHUNKED)
    freed = weakref.ref(body)
    gc.disable()
    try:
        with suppress(BodyTooLarge):
            await whole(body)
        del body
        assert freed() is None
    finally:
        gc.enable()


async def test_slow_bytes_do_not_extend_the_time(limits_of, body_of, monkeypatch):
    """tests/integration/test_wire.py has bodies that stall."""
    body = body_of(limits_of(receive_timeout_s=0.2), content_length="90")

    async def receive():
        await asyncio.sleep(0.02)
        return part(1, more=True)

    monkeypatch.setattr(body, "_receive", receive)
    with pytest.raises(SlowRequest):
        await whole(body)


async def test_the_wait_for_an_answer_has_no_limit(limits_of, body_of):
    body = body_of(limits_of(receive_timeout_s=0.01), part(5, more=False), content_length="5")
    await body.receive()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(body.receive(), 0.1)


async def test_what_the_protocol_has_refused_is_raised_where_the_body_is_read(limits_of, body_of):
    body = body_of(limits_of(), part(1, more=True), **CHUNKED)
    body._state.refusal = MalformedRequest("no chunk")
    with pytest.raises(MalformedRequest):
        await body.receive()


async def test_of_bodies_that_are_too_large_together_the_newest_is_refused(limits_of, body_of):
    limits = limits_of(memory=600)  # a quarter of which the bodies take
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
    await whole(body_of(limits, part(100, more=False), content_length="100"))


async def test_an_idle_service_has_room_for_the_largest_body(limits_of, body_of):
    """Else its client would get 503 each time that it sends it."""
    await whole(body_of(limits_of(memory=80), part(100, more=False), content_length="100"))


@pytest.mark.parametrize("after", [[part(9, more=True)] * 3, [part(9, more=True), LEFT], [part(9, more=False)]])
async def test_the_rest_of_a_body_is_dropped_for_a_limited_time_and_counts_no_longer(
    limits_of, body_of, monkeypatch, after
):
    monkeypatch.setattr(module, "LINGER_S", 0.05)
    limits, sent = limits_of(), []
    body = body_of(limits, part(50, more=True), *after, sent=sent, **CHUNKED)
    await body.receive()
    async with asyncio.timeout(4):
        for message in ANSWER:
            await body.send(message)
    assert limits.bytes_in_work == 0
    assert [message.get("body") for message in sent] == [None, b"no", None]
    assert (b"connection", b"close") in sent[0]["headers"]


@pytest.mark.parametrize(
    ("headers", "finished"),
    [
        ({}, True),
        ({"content_length": "0"}, True),
        ({"content_length": "1"}, False),
        ({"transfer_encoding": "x"}, False),
    ],
)
async def test_a_request_without_a_body_needs_no_room_and_is_finished_from_the_start(
    limits_of, body_of, headers, finished
):
    limits, sent = limits_of(), []
    limits.bytes_in_work = 2**60
    limits.check_header({})
    await body_of(limits, sent=sent, **headers).send(ANSWER[0])
    assert (sent == [ANSWER[0]]) == finished
