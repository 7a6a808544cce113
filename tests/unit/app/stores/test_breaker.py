"""app/stores/breaker.py: opens after failures in a row, and closes when a probe works."""

import asyncio

from app.stores.breaker import FAILURES, PAUSE_S, Breaker


class Guarded:
    """Fails as often as it is set to. Time passes only when `tick` is called."""

    def __init__(self, *, failing_probes: int = 0) -> None:
        self.failing_probes = failing_probes
        self.probes = 0
        self.slept: list[float] = []
        self._tick = asyncio.Semaphore(0)
        self.breaker = Breaker(probe=self.probe, sleep=self.sleep)

    async def probe(self) -> None:
        self.probes += 1
        if self.probes <= self.failing_probes:
            raise ConnectionError

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await self._tick.acquire()

    async def tick(self) -> None:
        self._tick.release()
        for _ in range(5):  # let the probe run
            await asyncio.sleep(0)

    def fail(self, times: int) -> None:
        for _ in range(times):
            self.breaker.failed()


def scenario(run):
    """A coroutine as a test, at the end of which no task is left."""

    async def whole() -> None:
        await run()
        assert len(asyncio.all_tasks()) == 1

    return lambda: asyncio.run(whole())


@scenario
async def test_it_opens_after_failures_in_a_row():
    guarded = Guarded()
    guarded.fail(FAILURES - 1)
    guarded.breaker.succeeded()
    guarded.fail(FAILURES - 1)
    assert not guarded.breaker.is_open
    guarded.fail(1)
    assert guarded.breaker.is_open
    await asyncio.sleep(0)
    await guarded.breaker.close()
    assert guarded.probes == 0


@scenario
async def test_it_closes_with_the_first_probe_that_works():
    guarded = Guarded(failing_probes=2)
    guarded.fail(3 * FAILURES)  # those that were under way start no second recovery
    for expected in (True, True, False):
        await guarded.tick()
        assert guarded.breaker.is_open is expected
    assert guarded.probes == 3
    assert guarded.slept == [PAUSE_S] * 3
    guarded.fail(FAILURES - 1)
    assert not guarded.breaker.is_open


@scenario
async def test_a_success_that_comes_late_closes_it():
    """A request that was under way when it opened was answered: the probe is not waited for in vain."""
    guarded = Guarded(failing_probes=1)
    guarded.fail(FAILURES)
    guarded.breaker.succeeded()
    await guarded.tick()
    assert not guarded.breaker.is_open
