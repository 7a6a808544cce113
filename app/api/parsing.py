"""JSON is parsed on the event loop where that is short, and in a thread where it would hold up the loop for long.

A thread lets the loop run between the calls of a parser, not within one: each holds Python's lock until it returns.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

MAX_ON_LOOP_BYTES = 2**18  # parsing more takes a millisecond or more
T = TypeVar("T")


async def parsed(parse: Callable[[bytes], T], text: bytes) -> T:
    """`parse(text)`, and what it raises."""
    return parse(text) if len(text) <= MAX_ON_LOOP_BYTES else await asyncio.to_thread(parse, text)
