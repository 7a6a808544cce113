"""Finds addresses of hosts with one question at a time.

The system asks in a thread, which nothing can interrupt: a question to a name server that does not answer takes ten
seconds and more. A store that gives up earlier would otherwise leave a thread behind for each connection it tries.
"""

import asyncio
from typing import Any


class NameServer:
    """Belongs to the event loop."""

    def __init__(self) -> None:
        self._question: asyncio.Future[Any] | None = None

    @property
    def is_silent(self) -> bool:
        """Whether a question waits for its answer."""
        return self._question is not None and not self._question.done()

    async def find(self, host: str) -> None:
        """Returns when the host has an address. Raises OSError."""
        if not self.is_silent:
            self._question = asyncio.ensure_future(asyncio.get_running_loop().getaddrinfo(host, None))
            self._question.add_done_callback(lambda answered: answered.cancelled() or answered.exception())
        assert self._question
        await asyncio.shield(self._question)
