"""The body of a request, bounded in bytes and in time, and an answer that comes before its end."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress

from starlette.types import Message, Receive, Send

from app.errors import BodyTooLarge, Overloaded, SlowRequest, UnsupportedEncoding
from app.machine import allowed_memory
from app.settings import Settings
from app.telemetry.request_state import RequestState

MEMORY_SHARES = 4  # of which the bodies of all requests take one at most
LINGER_S = 5.0  # for a client to stop sending after its answer


class BodyLimits:
    """What bounds every body, and the number of bytes in the bodies of all requests in work."""

    def __init__(self, *, settings: Settings) -> None:
        self.receive_timeout_s = settings.receive_timeout_s
        self._max_bytes = settings.max_upload_bytes
        self._max_bytes_in_work = max(allowed_memory() // MEMORY_SHARES, self._max_bytes)
        self.bytes_in_work = 0

    def check_header(self, headers: Mapping[str, str]) -> None:
        """Refuse what the header alone shows to be wrong. Raises UnsupportedEncoding, BodyTooLarge."""
        # A compressed body would have to be counted twice, and images are compressed already.
        if headers.get("Content-Encoding", "identity").lower() != "identity":
            raise UnsupportedEncoding("Send the body without a content encoding.")
        declared = headers.get("Content-Length", "").lstrip("0")  # int() refuses thousands of digits
        self.check_size(int(declared) if declared.isdecimal() else 0)

    def check_size(self, size: int) -> None:
        """Raises BodyTooLarge for a body of so many bytes."""
        if size > self._max_bytes:
            raise BodyTooLarge(f"The request body exceeds {self._max_bytes} bytes (VIT_MAX_UPLOAD_BYTES).")

    def check_room(self) -> None:
        """Raises Overloaded if all bodies together are too large."""
        if self.bytes_in_work > self._max_bytes_in_work:
            raise Overloaded("The service is receiving too many bytes. Send this request again in a moment.")


class Body:
    """One request's body on its way in, and the answer on its way out."""

    def __init__(
        self, *, limits: BodyLimits, headers: Mapping[str, str], receive: Receive, send: Send, state: RequestState
    ) -> None:
        self._limits = limits
        self._receive = receive
        self._send = send
        self._state = state
        self._received = 0  # bytes
        self._finished = headers.get("Content-Length", "0") == "0" and "Transfer-Encoding" not in headers
        self._began = asyncio.get_running_loop().time()
        self._closing = False  # the connection, because the client still sends

    async def receive(self) -> Message:
        """Raises BodyTooLarge, SlowRequest, Overloaded when all bodies together exceed their limit, and what the
        protocol has left in the RequestState.
        """
        if self._finished:  # only the client's leaving can come, which may take its time
            return await self._receive()
        message = await (self._receive() if self._state.arrived else self._receive_in_time())
        if self._state.refusal:
            raise self._state.refusal
        size = len(message.get("body", b""))
        self._received += size
        self._limits.bytes_in_work += size
        self._limits.check_size(self._received)
        self._limits.check_room()
        if message["type"] == "http.request" and not message.get("more_body", False):
            self._finished = True
            self._state.stages.add("receive", self._state.stages.began, time.perf_counter())
        return message

    async def _receive_in_time(self) -> Message:
        """Raises SlowRequest."""
        receive_s = self._limits.receive_timeout_s
        try:
            async with asyncio.timeout_at(self._began + receive_s):
                return await self._receive()
        except TimeoutError:
            late = f"The request did not arrive within {receive_s:g} seconds (VIT_RECEIVE_TIMEOUT_S)."
            raise SlowRequest(late) from None

    async def send(self, message: Message) -> None:
        """A client that still sends gets all of the answer before its connection ends."""
        if message["type"] == "http.response.start":
            self._state.status = message["status"]
            self._closing = not (self._finished or self._state.arrived)
            if self._closing:
                message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
        elif self._closing and not message.get("more_body"):
            await self._send({**message, "more_body": True})
            await self._drop_rest()
            message = {"type": "http.response.body"}
        await self._send(message)

    def release(self) -> None:
        """The request is answered, or will be in a moment."""
        self._limits.bytes_in_work -= self._received
        self._received = 0

    async def _drop_rest(self) -> None:
        """Read what the client still sends, and drop it. If the connection were closed at once, the system would reset
        it, and the client would lose its answer.
        """
        self.release()
        with suppress(TimeoutError, asyncio.CancelledError):  # the server cancels when it ends
            async with asyncio.timeout(LINGER_S):
                while (await self._receive()).get("more_body"):
                    pass
