"""app/api/services.py: the work for a client that disconnects is cancelled, and asyncio logs nothing."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from starlette.requests import ClientDisconnect, Request

from app.api.services import cancel_on_disconnect
from app.errors import BodyTooLarge

MORE = {"type": "http.request", "body": b"x", "more_body": True}
LEFT = {"type": "http.disconnect"}

Work = Callable[[asyncio.Event], Awaitable[object]]


async def attended(work: Work, *messages: dict[str, object] | Exception) -> object:
    """What `cancel_on_disconnect` gives when `work(begun)` is done twice at a time.

    The messages, or the exception that reading them raises, come once `begun` is set; after them the client only waits.
    Fails when the work has not ended by then, or when asyncio has logged anything.
    """
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
    waiting, begun, running = list(messages), asyncio.Event(), 0

    async def receive() -> dict[str, object]:
        await (begun.wait() if waiting else asyncio.Event().wait())
        message = waiting.pop(0)
        if isinstance(message, Exception):
            raise message
        return message

    async def part() -> object:
        nonlocal running
        running += 1
        try:
            return await work(begun)
        finally:
            await asyncio.sleep(0)  # work may take a moment to end
            running -= 1

    try:
        return await cancel_on_disconnect(Request({"type": "http"}, receive), asyncio.gather(part(), part()))
    finally:
        assert running == 0
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gc.collect()
        assert complaints == []


async def done(begun: asyncio.Event) -> str:
    begun.set()
    await asyncio.sleep(0)
    return "done"


async def endless(begun: asyncio.Event) -> None:
    begun.set()
    await asyncio.Event().wait()


async def broken(begun: asyncio.Event) -> None:
    raise ValueError("broken")


@pytest.mark.parametrize("messages", [(), (MORE,)], ids=["all was sent", "more of the body came"])
async def test_work_that_ends_first_is_the_result(messages):
    assert await attended(done, *messages) == ["done", "done"]


@pytest.mark.parametrize(
    ("work", "messages", "raised"),
    [
        (endless, (LEFT,), ClientDisconnect),
        (endless, (MORE, LEFT), ClientDisconnect),
        (endless, (MORE, BodyTooLarge("Too much.")), BodyTooLarge),
        (broken, (), ValueError),
    ],
    ids=["the client left", "it left after more of the body", "an error in the body", "an error of the work"],
)
async def test_what_ends_the_work_is_raised(work, messages, raised):
    with pytest.raises(raised):
        await attended(work, *messages)


@pytest.mark.parametrize("turns", range(6))
async def test_work_that_ends_as_the_client_leaves_causes_no_complaint(turns):
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))

    async def receive() -> dict[str, object]:
        return LEFT

    async def short() -> None:
        for _ in range(turns):
            await asyncio.sleep(0)

    with suppress(ClientDisconnect):
        await cancel_on_disconnect(Request({"type": "http"}, receive), short())
    for _ in range(3):
        await asyncio.sleep(0)
    assert complaints == []
