"""app/api/hangup.py: who leaves takes the work along, and leaves nothing behind."""

import asyncio
import gc

import pytest
from starlette.requests import Request

from app.api.hangup import unless_gone
from app.errors import BodyTooLarge


class Client:
    """Sends nothing more, and hangs up at `leaving`."""

    def __init__(self, leaving: asyncio.Event) -> None:
        self._leaving = leaving

    async def receive(self):
        await self._leaving.wait()
        return {"type": "http.disconnect"}


def run(scenario):
    """Run `scenario(leaving)`; what asyncio would have logged is a failure."""
    complaints = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
        found = await asyncio.wait_for(scenario(asyncio.Event()), 10)
        gc.collect()
        return found

    found = asyncio.run(main())
    assert complaints == []
    return found


def test_work_that_is_done_first_is_answered():
    async def scenario(leaving):
        return await unless_gone(Client(leaving), asyncio.gather(asyncio.sleep(0, "a"), asyncio.sleep(0, "b")))

    assert run(scenario) == ["a", "b"]


def test_who_leaves_ends_the_work():
    ended = []

    async def work(leaving):
        try:
            leaving.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    async def scenario(leaving):
        found = await unless_gone(Client(leaving), asyncio.gather(work(leaving), work(leaving)))
        return found, len(ended)

    assert run(scenario) == (None, 2)


def test_what_goes_wrong_in_the_work_is_told():
    async def work():
        raise ValueError("broken")

    async def scenario(leaving):
        with pytest.raises(ValueError, match="broken"):
            await unless_gone(Client(leaving), asyncio.gather(work()))

    run(scenario)


def attended(*messages: dict | Exception, answer_after: float | None):
    """What `unless_gone` gives for a client that sends these, and what asyncio had to complain of."""
    complaints = []

    async def receive():
        message = waiting.pop(0) if waiting else await asyncio.Event().wait()
        if isinstance(message, Exception):
            raise message
        return message

    async def part():
        await (asyncio.Event().wait() if answer_after is None else asyncio.sleep(answer_after))
        return "done"

    async def request():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context["message"]))
        try:
            return await unless_gone(Request({"type": "http"}, receive), asyncio.gather(part(), part()))
        finally:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            gc.collect()

    waiting = list(messages)
    return asyncio.run(request()), complaints


MORE = {"type": "http.request", "body": b"x", "more_body": True}
LEFT = {"type": "http.disconnect"}


def test_work_that_is_done_is_the_answer():
    assert attended(MORE, answer_after=0) == (["done", "done"], [])


def test_work_of_a_client_that_left_is_dropped_without_a_word():
    assert attended(MORE, LEFT, answer_after=None) == (None, [])


def test_what_is_wrong_with_the_body_is_told():
    with pytest.raises(BodyTooLarge):
        attended(MORE, BodyTooLarge("Too much."), answer_after=None)
