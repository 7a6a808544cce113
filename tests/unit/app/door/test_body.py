import asyncio
from collections.abc import Awaitable, Callable
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


def run(scenario: Callable[[Body], Awaitable[object]], limits: Bodies, request, messages: list[dict]):
    """What `scenario` returns for a body of these messages. At the end of the list the client stalls."""

    async def receive():
        return messages.pop(0) if messages else await asyncio.Event().wait()

    async def main():
        return await scenario(Body(limits, request, receive))

    return asyncio.run(main())


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
def test_the_limit_is_allowed_and_one_byte_more_is_refused_without_a_declared_length(request_of, headers):
    assert run(whole, bodies(), request_of(**headers), [part(60, more=True), part(40, more=False)]).finished
    with pytest.raises(BodyTooLarge):
        run(whole, bodies(), request_of(**headers), [part(60, more=True), part(41, more=False)])


@pytest.mark.parametrize(("reads", "messages"), [(whole, [part(5, more=True)]), (Body.arrive, [])])
def test_a_body_that_stalls(request_of, reads, messages):
    with pytest.raises(SlowRequest):
        run(reads, bodies(receive_timeout_s=0.01), request_of(content_length="10"), [*messages])


def test_slow_bytes_do_not_extend_the_time(request_of):
    async def drip():
        async def receive():
            await asyncio.sleep(0.02)
            return part(1, more=True)

        await whole(Body(bodies(receive_timeout_s=0.2), request_of(content_length="90"), receive))

    with pytest.raises(SlowRequest):
        asyncio.run(drip())


def test_the_wait_for_an_answer_has_no_limit(request_of):
    messages = [part(5, more=False)]

    async def wait(body: Body):
        await body.receive()
        waiting = asyncio.ensure_future(body.receive())
        done, _ = await asyncio.wait([waiting], timeout=0.1)
        waiting.cancel()
        return done

    assert run(wait, bodies(receive_timeout_s=0.01), request_of(content_length="5"), messages) == set()


@pytest.mark.parametrize(
    ("sizes", "ahead"),
    [
        ([100], 100),
        ([1] * 100, 100),
        ([AHEAD_BYTES, 100], AHEAD_BYTES),
        ([AHEAD_BYTES - 1, 100, 100], AHEAD_BYTES + 99),
    ],
)
def test_bytes_that_have_arrived_are_received_once_and_in_order(request_of, sizes, ahead):
    content = bytes(i % 251 for i in range(sum(sizes)))
    messages = [
        {"type": "http.request", "body": content[end - size : end], "more_body": end < len(content)}
        for size, end in zip(sizes, accumulate(sizes), strict=True)
    ]
    limits = bodies(max_upload_bytes=10**6, max_intake_bytes=10**6)

    async def arrived(body: Body):
        await body.arrive()
        assert limits.bytes_in_work == ahead
        received = [await body.receive()]
        assert len(received[0]["body"]) == ahead
        while received[-1]["more_body"]:
            received.append(await body.receive())
        assert b"".join(message["body"] for message in received) == content
        assert (body.finished, messages) == (True, [])
        body.release()
        assert limits.bytes_in_work == 0

    run(arrived, limits, request_of(content_length=str(len(content))), messages)


def test_a_disconnect_while_the_body_arrives_is_passed_on(request_of):
    async def left(body: Body):
        await body.arrive()
        return [await body.receive(), await body.receive()]

    messages = [part(5, more=True), LEFT, LEFT]
    assert run(left, bodies(), request_of(content_length="10"), messages) == [part(5, more=True), LEFT]


def test_all_bodies_together_are_bounded_until_they_are_released(request_of):
    limits = bodies(max_intake_bytes=150)
    first = run(whole, limits, request_of(content_length="100"), [part(100, more=False)])
    with pytest.raises(Overloaded):
        run(whole, limits, request_of(content_length="60"), [part(60, more=False)])
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
def test_a_request_without_a_body_is_finished_from_the_start(request_of, headers, finished):
    async def is_finished(body: Body):
        return body.finished

    assert run(is_finished, bodies(), request_of(**headers), []) == finished
