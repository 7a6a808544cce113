"""Work for a client that may disconnect before it is done."""

import asyncio
from typing import TypeVar

from fastapi import Request

T = TypeVar("T")


async def unless_gone(request: Request, work: asyncio.Future[T]) -> T | None:
    """The result of `work`, or None if the client disconnects first. The work has ended either way.

    Drops what is left of the body.
    """
    disconnected = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((work, disconnected), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            disconnected.result()  # raises if something is wrong with the body that is dropped
            return None
        return work.result()
    finally:
        if not disconnected.cancel() and not disconnected.cancelled():
            disconnected.exception()  # else asyncio logs it
        if work.cancel():
            await asyncio.gather(work, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
