"""Work for a client that may leave before it is done."""

import asyncio
from typing import TypeVar

from fastapi import Request

T = TypeVar("T")


async def unless_gone(request: Request, work: asyncio.Future[T]) -> T | None:
    """What `work` gives, or None when the client hangs up first; the work has ended either way.

    Drops what is left of the body.
    """
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            gone.result()  # raises what is wrong with the body that is dropped
            return None
        return work.result()
    finally:
        for future in (gone, work):
            future.cancel()
        await asyncio.gather(gone, work, return_exceptions=True)  # else asyncio logs what nobody asks for


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
