import asyncio
import time
from contextlib import suppress
from unittest.mock import AsyncMock

import pytest

from app.stores.breaker import FAILURES, Breaker

PAUSE_S = 0.01


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr("app.stores.breaker.PAUSE_S", PAUSE_S)


def fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        breaker.failed()


async def until_closed(breaker: Breaker) -> None:
    while breaker.is_open:
        await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1


async def test_it_opens_after_failures_in_a_row():
    probe = AsyncMock()
    breaker = Breaker(probe=probe)
    fail(breaker, FAILURES - 1)
    breaker.succeeded()
    fail(breaker, FAILURES - 1)
    assert not breaker.is_open
    fail(breaker, 1)
    assert breaker.is_open
    await breaker.close()
    assert (probe.await_count, len(asyncio.all_tasks())) == (0, 1)


async def test_it_closes_with_the_first_probe_that_works():
    probe, start = AsyncMock(side_effect=[ConnectionError, ConnectionError, None]), time.monotonic()
    breaker = Breaker(probe=probe)
    fail(breaker, 3 * FAILURES)  # those that were under way start no second recovery
    await until_closed(breaker)
    assert probe.await_count == 3
    assert time.monotonic() - start >= 3 * PAUSE_S
    fail(breaker, FAILURES - 1)
    assert not breaker.is_open


async def test_a_success_that_comes_late_closes_it():
    """A request that was under way when it opened was answered: the probe is not waited for in vain."""
    probe = AsyncMock(side_effect=ConnectionError)
    breaker = Breaker(probe=probe)
    fail(breaker, FAILURES)
    await asyncio.sleep(0)  # it pauses before its first probe
    breaker.succeeded()
    await until_closed(breaker)
    assert probe.await_count == 1


async def test_it_ends_though_a_probe_swallows_the_cancellation():
    async def probe() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        raise ConnectionError

    breaker = Breaker(probe=probe)
    breaker.open()
    await asyncio.sleep(3 * PAUSE_S)
    await breaker.close()
    assert len(asyncio.all_tasks()) == 1
