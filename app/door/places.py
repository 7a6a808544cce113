"""The places of all connections, and the bytes of all answers that wait for their readers.

When either is short, it is taken from the connection that holds it for nothing, not from the one that comes.
"""

import time
from itertools import chain
from typing import Literal

from app.door.transport import LingeringTransport

MAX_UNREAD_BYTES = 64 * 2**20  # of answers, beside what the system holds for each connection


Doing = Literal["idle", "waiting", "work"]  # without a whole header; for a body or a reader; or none of this


class Places:
    """Belongs to the event loop."""

    def __init__(self, *, at_work: int) -> None:
        """Twice as many connections may be open as may be `at_work`."""
        self._most_at_work = at_work
        self._most_idle = at_work // 4 + 1  # beyond these the idle go first; they stay long enough to send a header
        # The longest without news first.
        self._held: dict[Doing, dict[LingeringTransport, None]] = {"idle": {}, "waiting": {}, "work": {}}
        # Since when more is unsent than fits, and how much then.
        self._unread: dict[LingeringTransport, tuple[float, int]] = {}

    @property
    def crowded(self) -> bool:
        return len(self._held["work"]) >= self._most_at_work

    def enter(self, connection: LingeringTransport) -> None:
        """Take a place. If there is none, an idle connection ends, or else one that waits, or else this one."""
        self.put(connection, "idle")
        if sum(map(len, self._held.values())) > 2 * self._most_at_work:
            idle, waiting = self._held["idle"], self._held["waiting"]
            longest = next(chain(idle, waiting) if len(idle) > self._most_idle else chain(waiting, idle))
            self.leave(longest)
            longest.abort()

    def put(self, connection: LingeringTransport, doing: Doing) -> None:
        """There is news of it, and it is the newest then; but the bytes of a header are no news of an idle one."""
        if doing != "idle" or connection not in self._held["idle"]:
            self.leave(connection)
            self._held[doing][connection] = None

    def leave(self, connection: LingeringTransport) -> None:
        for held in self._held.values():
            held.pop(connection, None)

    def unread(self, connection: LingeringTransport) -> None:
        """An answer does not fit its buffer. If these are too large together, those end that would be read last."""
        now = time.monotonic()
        self._unread[connection] = now, connection.get_write_buffer_size()

        def remaining_s(one: LingeringTransport) -> float:
            """At its pace so far."""
            began, at_first = self._unread[one]
            unsent: int = one.get_write_buffer_size()
            return unsent * (now - began) / max(at_first - unsent, 1)

        while len(self._unread) > 1 and sum(one.get_write_buffer_size() for one in self._unread) > MAX_UNREAD_BYTES:
            worst = max(self._unread, key=remaining_s)
            self.read(worst)
            worst.reset()

    def read(self, connection: LingeringTransport) -> None:
        """It fits its buffer again, or its connection has ended."""
        self._unread.pop(connection, None)
