"""Notices when something holds up the event loop."""

import asyncio
from collections.abc import Callable

INTERVAL_S = 0.25


async def watch(observe: Callable[[float], None]) -> None:
    """Tell `observe`, four times a second, how many seconds late the loop was. Runs until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + INTERVAL_S
        await asyncio.sleep(INTERVAL_S)
        observe(max(loop.time() - due, 0.0))
