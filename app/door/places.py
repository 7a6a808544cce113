"""The places of all connections, and the bytes of all answers that wait for their readers.

When either is short, it is taken from the connection that holds it for nothing, not from the one that comes.
"""

import time
from itertools import chain

from app.door.transport import LingeringTransport

MAX_UNREAD_BYTES = 64 * 2**20  # of answers, beside what the system holds for each connection


class Places:
    """Belongs to the event loop. A connection is at work while its request is whole and its answer finds a reader."""

    def __init__(self, *, at_work: int) -> None:
        """Twice as many may be open as may be `at_work`."""
        self._most_at_work = at_work
        self._most_at_rest = at_work // 4 + 1  # beyond these the idle go first; they stay long enough to send a header
        self._at_work: set[LingeringTransport] = set()
        self._idle: dict[LingeringTransport, None] = {}  # without a request, the longest first
        self._waiting: dict[LingeringTransport, None] = {}  # for a body or a reader, the longest without a byte first
        self._unread: dict[
            LingeringTransport, tuple[float, int]
        ] = {}  # since when more is unsent than fits, and how much then

    @property
    def crowded(self) -> bool:
        return len(self._at_work) >= self._most_at_work

    def enter(self, connection: LingeringTransport) -> None:
        """Take a place. If there is none, an idle connection ends, or else one that waits, or else this one."""
        self.idle(connection)
        if len(self._at_work) + len(self._idle) + len(self._waiting) > 2 * self._most_at_work:
            idle_first = len(self._idle) > self._most_at_rest
            longest = next(chain(self._idle, self._waiting) if idle_first else chain(self._waiting, self._idle))
            self.leave(longest)
            longest.abort()

    def idle(self, connection: LingeringTransport) -> None:
        """It has no request, or not the whole header. The bytes of a header do not count as news."""
        if connection not in self._idle:
            self.leave(connection)
            self._idle[connection] = None

    def wait(self, connection: LingeringTransport) -> None:
        """It has just heard from its client, and waits for more of a body, or for an answer to be read."""
        self.leave(connection)
        self._waiting[connection] = None

    def work(self, connection: LingeringTransport) -> None:
        self.leave(connection)
        self._at_work.add(connection)

    def leave(self, connection: LingeringTransport) -> None:
        self._at_work.discard(connection)
        self._idle.pop(connection, None)
        self._waiting.pop(connection, None)

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
