"""The places of all connections, and the bytes of all answers that wait for their readers.

When either is short, it is taken from the connection that holds it for nothing, not from the one that comes.
"""

import time

from app.door.transport import LingeringTransport

MAX_UNREAD_BYTES = 64 * 2**20  # of answers, beside what the system holds for each connection


class Places:
    """Belongs to the event loop. A connection is at work from the end of a request until its answer is complete."""

    def __init__(self, *, at_work: int) -> None:
        """Twice as many may be open as may be `at_work`."""
        self._most_at_work = at_work
        self._at_work: set[LingeringTransport] = set()
        self._waiting: dict[LingeringTransport, None] = {}  # for a request or its body, the longest first
        self._unread: dict[LingeringTransport, float] = {}  # since when more is unsent than its buffer should hold

    @property
    def crowded(self) -> bool:
        return len(self._at_work) >= self._most_at_work

    def enter(self, connection: LingeringTransport) -> None:
        """Take a place. If there is none, the connection ends that has waited longest: this one, if all are at work."""
        self.wait(connection)
        if len(self._at_work) + len(self._waiting) > 2 * self._most_at_work:
            longest = next(iter(self._waiting))
            self.leave(longest)
            longest.abort()

    def wait(self, connection: LingeringTransport) -> None:
        """From now on this connection waits for its client."""
        self.leave(connection)
        self._waiting[connection] = None

    def work(self, connection: LingeringTransport) -> None:
        self._waiting.pop(connection, None)
        self._at_work.add(connection)

    def leave(self, connection: LingeringTransport) -> None:
        self._at_work.discard(connection)
        self._waiting.pop(connection, None)

    def unread(self, connection: LingeringTransport) -> None:
        """An answer does not fit its buffer. If these are too large together, those end that hold most for longest."""
        now = self._unread[connection] = time.monotonic()
        while len(self._unread) > 1 and sum(one.get_write_buffer_size() for one in self._unread) > MAX_UNREAD_BYTES:
            worst = max(self._unread, key=lambda one: one.get_write_buffer_size() * (now - self._unread[one]))
            self.read(worst)
            worst.reset()

    def read(self, connection: LingeringTransport) -> None:
        """It fits its buffer again, or its connection has ended."""
        self._unread.pop(connection, None)
