"""app/telemetry/metrics.py: a blocked event loop is noticed."""

import asyncio
import time

from app.telemetry.metrics import LOOP_INTERVAL_S, watch_event_loop


def test_a_blocked_loop_is_noticed():
    async def scenario() -> float:
        seen: asyncio.Queue[float] = asyncio.Queue()
        watching = asyncio.create_task(watch_event_loop(seen.put_nowait))
        await asyncio.sleep(0)
        time.sleep(2 * LOOP_INTERVAL_S)  # blocks, as nothing should
        lag = await seen.get()
        watching.cancel()
        return lag

    assert asyncio.run(scenario()) >= 0.9 * LOOP_INTERVAL_S
