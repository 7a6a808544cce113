"""app/api/drawings.py: a bound on what is drawn at a time, and on when it begins."""

import asyncio
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.api.drawings import Drawings
from app.errors import DeadlineExceeded, Overloaded


@pytest.fixture
def drawings() -> Iterator[Drawings]:
    """Two at most, drawn by one thread."""
    with ThreadPoolExecutor(1) as pool:
        yield Drawings(pool=pool, max_in_work=2)


@pytest.fixture
def go_on() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


async def begun(drawings: Drawings, render: Callable[[], object]) -> asyncio.Task:
    drawn = asyncio.create_task(drawings.draw(render, deadline=math.inf))
    await asyncio.sleep(0)
    return drawn


async def test_a_drawing_over_the_limit_is_refused_at_once(drawings, go_on):
    drawn = [await begun(drawings, go_on.wait) for _ in range(2)]
    with pytest.raises(Overloaded):
        await drawings.draw(bytes, deadline=math.inf)
    go_on.set()
    assert await asyncio.gather(*drawn) == [True, True]
    assert await drawings.draw(bytes, deadline=math.inf) == b""


@pytest.mark.parametrize("left_s", [0.05, -1])
async def test_a_drawing_that_waits_until_its_deadline_never_begins(drawings, go_on, left_s):
    late = []
    first = await begun(drawings, go_on.wait)
    with pytest.raises(DeadlineExceeded):
        await drawings.draw(lambda: late.append(1), deadline=time.monotonic() + left_s)
    go_on.set()
    await first
    await drawings.draw(bytes, deadline=math.inf)
    assert late == []


async def test_a_failed_drawing_frees_its_place(drawings):
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await drawings.draw(lambda: 1 / 0, deadline=math.inf)


async def test_a_drawing_past_its_deadline_counts_until_it_ends(drawings, go_on):
    with pytest.raises(DeadlineExceeded):
        await drawings.draw(go_on.wait, deadline=time.monotonic() + 0.05)
    second = await begun(drawings, bytes)
    with pytest.raises(Overloaded):
        await drawings.draw(bytes, deadline=math.inf)
    go_on.set()
    assert await second == b""
    assert await drawings.draw(bytes, deadline=math.inf) == b""


async def test_a_drawing_for_a_client_that_disconnected_never_begins(drawings, go_on):
    drawn = []
    first = await begun(drawings, go_on.wait)
    for _ in range(100):
        gone = await begun(drawings, lambda: drawn.append(1))
        gone.cancel()
        await asyncio.wait([gone])
        await asyncio.sleep(0)
    go_on.set()
    assert await first
    assert await drawings.draw(bytes, deadline=math.inf) == b""
    assert drawn == []
