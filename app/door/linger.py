"""Ending a connection so that its last answer arrives."""

import asyncio
from collections.abc import Callable
from typing import Any

LINGER_S = 5.0  # how long a client may go on sending after its answer
FLUSH_S = 60.0  # how long it may take to read one that the system could not take at once


class LingeringTransport:
    """Closes in stages while the client may still be sending (RFC 9112, 9.6): the answer and its end first, then what
    comes is read and dropped, then the connection goes.

    Closing at once with unread bytes makes TCP reset the connection, and the client loses the answer.
    """

    def __init__(self, transport: asyncio.Transport, *, sending: Callable[[], bool]) -> None:
        self._transport = transport
        self._sending = sending
        self._closing = False
        self._timer: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._closing or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Nothing once it closes: of pipelined requests uvicorn tells only the last one that its client has left."""
        if not self.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        if self.is_closing():
            return
        self._closing = True
        patience = FLUSH_S if self._transport.get_write_buffer_size() else LINGER_S
        if self._sending():
            self._transport.write_eof()
            self._transport.resume_reading()  # and the protocol drops it
        else:
            self._transport.close()
        self._timer = asyncio.get_running_loop().call_later(patience, self._transport.abort)

    def ended(self) -> None:
        """The connection is gone: lets go of the protocol behind `sending`, and of the timer, which would keep both."""
        self._sending = lambda: False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
