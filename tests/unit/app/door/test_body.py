"""app/door/body.py: limits of bodies in bytes and in seconds."""

import asyncio
from itertools import accumulate

import pytest

from app.door.body import AHEAD_BYTES, Bodies, Body
from app.errors import BodyTooLarge, Overloaded, SlowRequest, UnsupportedEncoding


def bodies(**limits: float) -> Bodies:
    return Bodies(**{"max_bytes": 100, "max_bytes_in_work": 1000, "timeout_s": 10, **limits})


def part(size: int, *, more: bool) -> dict:
    return {"type": "http.request", "body": bytes(size), "more_body": more}


def read(limits: Bodies, request, messages: list[dict]) -> Body:
    """Receive all messages. At the end of the list the client stalls."""

    async def receive():
        return messages.pop(0) if messages else await asyncio.Event().wait()

    async def whole():
        body = Body(limits, request, receive)
        while (await body.receive()).get("more_body"):
            pass
        return body

    return asyncio.run(whole())


@pytest.mark.parametrize("length", ["0", "100"])
def test_a_declared_length_up_to_the_limit(request_of, length):
    bodies().check(request_of(content_length=length))  # raises BodyTooLarge over it, see the next test


@pytest.mark.parametrize("length", ["101", "99999999999999999999"])
def test_a_declared_length_over_the_limit(request_of, length):
    with pytest.raises(BodyTooLarge, match="100 bytes"):
        bodies().check(request_of(content_length=length))  # raises BodyTooLarge over it, see the next test


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate, gzip", "identity, gzip", ""])
def test_an_encoded_body_is_refused(request_of, encoding):
    with pytest.raises(UnsupportedEncoding) as refused:
        bodies().check(request_of(content_encoding=encoding))
    assert refused.value.headers == {"Accept-Encoding": "identity"}


def test_the_limit_itself_is_allowed(request_of):
    body = read(bodies(), request_of(content_length="100"), [part(60, more=True), part(40, more=False)])
    assert body.finished


@pytest.mark.parametrize("headers", [{}, {"transfer_encoding": "chunked"}])
def test_one_byte_over_the_limit_is_refused_without_a_declared_length(request_of, headers):
    with pytest.raises(BodyTooLarge):
        read(bodies(), request_of(**headers), [part(60, more=True), part(41, more=False)])


def test_a_body_that_stalls(request_of):
    with pytest.raises(SlowRequest):
        read(bodies(timeout_s=0.01), request_of(content_length="10"), [part(5, more=True)])


def test_slow_bytes_do_not_extend_the_time(request_of):
    async def drip():
        async def receive():
            await asyncio.sleep(0.02)
            return part(1, more=True)

        body = Body(bodies(timeout_s=0.2), request_of(content_length="90"), receive)
        while True:
            await body.receive()

    with pytest.raises(SlowRequest):
        asyncio.run(drip())


def test_the_wait_for_an_answer_has_no_limit(request_of):
    async def wait():
        messages = [part(5, more=False)]
        leaves = asyncio.Event()

        async def receive():
            if messages:
                return messages.pop()
            await leaves.wait()
            return {"type": "http.disconnect"}

        body = Body(bodies(timeout_s=0.01), request_of(content_length="5"), receive)
        await body.receive()
        waiting = asyncio.ensure_future(body.receive())
        done, _ = await asyncio.wait([waiting], timeout=0.1)
        assert not done
        leaves.set()
        assert (await waiting)["type"] == "http.disconnect"

    asyncio.run(wait())


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
    async def arrived():
        whole = bytes(i % 251 for i in range(sum(sizes)))
        ends = list(accumulate(sizes))
        messages = [
            {"type": "http.request", "body": whole[end - size : end], "more_body": end < len(whole)}
            for size, end in zip(sizes, ends, strict=True)
        ]

        async def receive():
            return messages.pop(0)

        limits = bodies(max_bytes=10**6, max_bytes_in_work=10**6)
        body = Body(limits, request_of(content_length=str(len(whole))), receive)
        await body.arrive()
        assert limits.bytes_in_work == ahead
        received = [await body.receive()]
        assert len(received[0]["body"]) == ahead
        while received[-1]["more_body"]:
            received.append(await body.receive())
        assert b"".join(message["body"] for message in received) == whole
        assert body.finished
        assert not messages
        body.release()
        assert limits.bytes_in_work == 0

    asyncio.run(arrived())


def test_a_disconnect_while_the_body_arrives_is_passed_on(request_of):
    async def left():
        messages = [part(5, more=True)]

        async def receive():
            return messages.pop() if messages else {"type": "http.disconnect"}

        body = Body(bodies(), request_of(content_length="10"), receive)
        await body.arrive()
        assert await body.receive() == part(5, more=True)
        assert (await body.receive())["type"] == "http.disconnect"

    asyncio.run(left())


def test_a_body_that_stalls_while_it_arrives(request_of):
    async def stalled():
        body = Body(bodies(timeout_s=0.01), request_of(content_length="10"), asyncio.Event().wait)
        await body.arrive()

    with pytest.raises(SlowRequest):
        asyncio.run(stalled())


def test_all_bodies_together_are_bounded_until_they_are_released(request_of):
    limits = bodies(max_bytes_in_work=150)
    first = read(limits, request_of(content_length="100"), [part(100, more=False)])
    with pytest.raises(Overloaded):
        read(limits, request_of(content_length="60"), [part(60, more=False)])
    first.release()
    first.release()  # once is enough
    assert limits.bytes_in_work == 60  # of the refused one, which its door releases


def test_a_request_without_a_body_is_finished_from_the_start(request_of):
    async def made(**headers):
        return Body(bodies(), request_of(**headers), None).finished

    assert asyncio.run(made())
    assert asyncio.run(made(content_length="0"))
    assert not asyncio.run(made(content_length="1"))
    assert not asyncio.run(made(transfer_encoding="chunked"))
