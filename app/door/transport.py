"""A transport that sends a response in one piece, and ends a connection so that the last response arrives."""

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any

LINGER_S = 5.0  # for a client to stop sending after its response
FLUSH_S = 60.0  # for a client to read a response that did not fit the system's buffer


class LingeringTransport:
    """Sends together what is written at one turn of the event loop: uvicorn writes the head of a response and its body
    apart, which would take two system calls and wake the client twice.

    Closes in stages while the client may still be sending (RFC 9112, 9.6). First the response and its end are sent,
    then incoming bytes are read and dropped, then the connection is closed.

    Closing at once with unread bytes would make TCP reset the connection, and the client would lose the response.
    """

    def __init__(self, transport: asyncio.Transport, *, sending: Callable[[], bool]) -> None:
        self._transport = transport
        self._sending = sending
        self._closing = False
        self._unsent: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._closing or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Write nothing once it closes: uvicorn tells only the last of several pipelined requests about the close."""
        if self.is_closing():
            return
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(data)

    def _flush(self) -> None:
        if self._unsent and not self._transport.is_closing():  # the client may have left since
            self._transport.writelines(self._unsent)
        self._unsent.clear()

    def close(self) -> None:
        if self.is_closing():
            return
        self._flush()
        self._closing = True
        timeout_s = FLUSH_S if self._transport.get_write_buffer_size() else LINGER_S
        if self._sending():
            self._transport.write_eof()
            self._transport.resume_reading()  # the protocol drops what comes
        else:
            self._transport.close()
        self._timer = asyncio.get_running_loop().call_later(timeout_s, self._transport.abort)

    def reset(self) -> None:
        """End the connection now. The system also forgets what it has not sent, for which it would try long after."""
        at_once = struct.pack("ii", 1, 0)
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        self._transport.abort()

    def ended(self) -> None:
        """The connection is gone: release the protocol behind `sending`, and the timer, which would keep both alive."""
        self._sending = lambda: False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
