import asyncio
from collections.abc import Callable
from itertools import accumulate

import pytest

from app.door.body import AHEAD_BYTES, Bodies, Body
from app.errors import BodyTooLarge, Overloaded, SlowRequest, UnsupportedEncoding
from app.settings import Settings

LEFT = {"type": "http.disconnect"}


def bodies(**limits: float) -> Bodies:
    return Bodies(settings=Settings(**{"max_upload_bytes": 100, "max_intake_bytes": 1000, **limits}))


def part(size: int, *, more: bool) -> dict:
    return {"type": "http.request", "body": bytes(size), "more_body": more}


@pytest.fixture
def body_of(request_of) -> Callable[..., Body]:
    """A body of these messages, after which the client stalls."""

    def made(limits: Bodies, *messages: dict, **headers: str) -> Body:
        waiting = list(messages)

        async def receive():
            return waiting.pop(0) if waiting else await asyncio.Event().wait()

        return Body(limits, request_of(**headers), receive)

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


@pytest.mark.parametrize("headers", [{}, {"transfer_encoding": "chunked"}])
async def test_the_limit_is_allowed_and_one_byte_more_is_refused_without_a_declared_length(body_of, headers):
    assert (await whole(body_of(bodies(), part(60, more=True), part(40, more=False), **headers))).finished
    with pytest.raises(BodyTooLarge):
        await whole(body_of(bodies(), part(60, more=True), part(41, more=False), **headers))


async def test_slow_bytes_do_not_extend_the_time(request_of):
    """test_door.py has a body that stalls."""

    async def receive():
        await asyncio.sleep(0.02)
        return part(1, more=True)

    with pytest.raises(SlowRequest):
        await whole(Body(bodies(receive_timeout_s=0.2), request_of(content_length="90"), receive))


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
    limits = bodies(max_upload_bytes=10**6, max_intake_bytes=10**6)
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
    limits = bodies(max_intake_bytes=150)
    first = await whole(body_of(limits, part(100, more=False), content_length="100"))
    with pytest.raises(Overloaded):
        await whole(body_of(limits, part(60, more=False), content_length="60"))
    first.release()
    assert limits.bytes_in_work == 60  # of the refused one, which its door releases


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
