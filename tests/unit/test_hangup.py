"""app/hangup.py: what becomes of work when its client leaves, or sends what it should not."""

import asyncio
import gc

import pytest
from starlette.requests import Request

from app.errors import BodyTooLarge
from app.hangup import unless_gone


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
