"""app/hangup.py: who leaves takes the work along, and leaves nothing behind."""

import asyncio
import gc

import pytest

from app.hangup import unless_gone


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
