import asyncio
import time

import pytest

from app.stores.breaker import FAILURES, Breaker

PAUSE_S = 0.01


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr("app.stores.breaker.PAUSE_S", PAUSE_S)


class Probed(Breaker):
    """Its probe fails `failing` times, then succeeds."""

    def __init__(self, *, failing: int = 0) -> None:
        super().__init__(probe=self.probe)
        self.failing = failing
        self.probes = 0

    async def probe(self) -> None:
        self.probes += 1
        if self.probes <= self.failing:
            raise ConnectionError

    def fail(self, times: int) -> None:
        for _ in range(times):
            self.failed()

    async def until_closed(self) -> None:
        while self.is_open:
            await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1


async def test_it_opens_after_failures_in_a_row():
    breaker = Probed()
    breaker.fail(FAILURES - 1)
    breaker.succeeded()
    breaker.fail(FAILURES - 1)
    assert not breaker.is_open
    breaker.fail(1)
    assert breaker.is_open
    await breaker.close()
    assert (breaker.probes, len(asyncio.all_tasks())) == (0, 1)


async def test_it_closes_with_the_first_probe_that_works():
    breaker, start = Probed(failing=2), time.monotonic()
    breaker.fail(3 * FAILURES)  # those that were under way start no second recovery
    await breaker.until_closed()
    assert breaker.probes == 3
    assert time.monotonic() - start >= 3 * PAUSE_S
    breaker.fail(FAILURES - 1)
    assert not breaker.is_open


async def test_a_success_that_comes_late_closes_it():
    """A request that was under way when it opened was answered: the probe is not waited for in vain."""
    breaker = Probed(failing=1)
    breaker.fail(FAILURES)
    await asyncio.sleep(0)  # it pauses before its first probe
    breaker.succeeded()
    await breaker.until_closed()
    assert breaker.probes == 1
