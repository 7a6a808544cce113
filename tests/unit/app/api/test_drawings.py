"""app/api/drawings.py: a bound on what is drawn at a time, and on when it begins."""

import asyncio
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.api.drawings import Drawings
from app.errors import DeadlineExceeded, Overloaded


def draw(scenario, *, max_in_work: int = 2):
    """Run `scenario(drawings)` with one thread that draws."""

    async def main():
        return await asyncio.wait_for(scenario(Drawings(pool=pool, max_in_work=max_in_work)), 20)

    with ThreadPoolExecutor(1) as pool:
        return asyncio.run(main())


def test_a_drawing_over_the_limit_is_refused_at_once():
    async def scenario(drawings: Drawings) -> None:
        go_on = threading.Event()
        drawn = [asyncio.ensure_future(drawings.draw(go_on.wait, deadline=math.inf)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await drawings.draw(bytes, deadline=math.inf)
        go_on.set()
        assert await asyncio.gather(*drawn) == [True, True]
        assert await drawings.draw(bytes, deadline=math.inf) == b""

    draw(scenario)


def test_a_drawing_that_waits_until_its_deadline_never_begins():
    async def scenario(drawings: Drawings) -> None:
        go_on, late = threading.Event(), []
        first = asyncio.ensure_future(drawings.draw(go_on.wait, deadline=math.inf))
        await asyncio.sleep(0)
        with pytest.raises(DeadlineExceeded):
            await drawings.draw(lambda: late.append(1), deadline=time.monotonic() + 0.05)
        go_on.set()
        await first
        await drawings.draw(bytes, deadline=math.inf)
        assert late == []

    draw(scenario)


def test_a_failed_drawing_frees_its_place_and_nothing_begins_after_its_deadline():
    async def scenario(drawings: Drawings) -> None:
        drawn = []
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await drawings.draw(lambda: 1 / 0, deadline=math.inf)
        with pytest.raises(DeadlineExceeded):
            await drawings.draw(lambda: drawn.append(1), deadline=time.monotonic() - 1)
        await drawings.draw(bytes, deadline=math.inf)
        assert drawn == []

    draw(scenario, max_in_work=1)


def test_a_drawing_past_its_deadline_counts_until_it_ends():
    async def scenario(drawings: Drawings) -> None:
        go_on = threading.Event()
        with pytest.raises(DeadlineExceeded):
            await drawings.draw(go_on.wait, deadline=time.monotonic() + 0.05)
        with pytest.raises(Overloaded):
            await drawings.draw(bytes, deadline=math.inf)
        go_on.set()
        while not drawings._places.acquire(blocking=False):
            await asyncio.sleep(0.001)
        drawings._places.release()
        assert await drawings.draw(bytes, deadline=math.inf) == b""

    draw(scenario, max_in_work=1)


def test_a_drawing_for_a_client_that_disconnected_never_begins():
    async def scenario(drawings: Drawings) -> None:
        go_on, drawn = threading.Event(), []
        first = asyncio.ensure_future(drawings.draw(go_on.wait, deadline=math.inf))
        for _ in range(100):
            gone = asyncio.ensure_future(drawings.draw(lambda: drawn.append(1), deadline=math.inf))
            await asyncio.sleep(0)
            gone.cancel()
            await asyncio.wait([gone])
            await asyncio.sleep(0)
        go_on.set()
        assert await first
        assert await drawings.draw(bytes, deadline=math.inf) == b""
        assert drawn == []

    draw(scenario)
