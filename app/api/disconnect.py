"""Work for a client that may disconnect before it is done."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

T = TypeVar("T")


async def cancel_on_disconnect(request: Request, awaited: Awaitable[T]) -> T:
    """The result of `awaited`, which has ended when this returns or raises. Drops the rest of the body.

    Raises ClientDisconnect if the client disconnects first, and what `awaited` and reading the body raise.
    """
    work = asyncio.ensure_future(awaited)
    disconnected = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((work, disconnected), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            disconnected.result()  # raises what is wrong with the body
            raise ClientDisconnect
        return work.result()
    finally:
        if not disconnected.cancel() and not disconnected.cancelled():
            disconnected.exception()  # else asyncio logs it
        if work.cancel():
            await asyncio.gather(work, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
