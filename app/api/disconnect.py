"""Work for a client that may disconnect before it is done."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

T = TypeVar("T")


async def cancel_on_disconnect(request: Request, awaited: Awaitable[T]) -> T:
    """The result of `awaited`, which has ended when this returns or raises. Drops the rest of the body.

    Raises ClientDisconnect if the client disconnects first, and what `awaited` and reading the body raise.
    """
    disconnected = asyncio.ensure_future(_disconnected(request))
    leaves = asyncio.timeout(None)

    def left(_: asyncio.Future[None]) -> None:
        with suppress(RuntimeError):  # the work has ended meanwhile
            leaves.reschedule(0)  # that is now

    try:
        async with leaves:
            disconnected.add_done_callback(left)
            return await awaited
    except TimeoutError:
        if not leaves.expired():
            raise  # of the work
        disconnected.result()  # raises what is wrong with the body
        raise ClientDisconnect from None
    finally:
        disconnected.remove_done_callback(left)
        if not disconnected.cancel() and not disconnected.cancelled():
            disconnected.exception()  # else asyncio logs it


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
