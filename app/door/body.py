"""The body of a request, bounded in bytes and in time."""

import asyncio
import time
from contextlib import suppress

from starlette.requests import HTTPConnection
from starlette.types import Message, Receive

from app.errors import BodyTooLarge, Overloaded, SlowRequest, UnsupportedEncoding
from app.settings import Settings, variable
from app.telemetry.stages import Stages

LINGER_S = 5.0  # for a client to stop sending after its answer


class Bodies:
    """The limits, and the number of bytes in the bodies of all requests in work."""

    def __init__(self, *, settings: Settings) -> None:
        self.settings = settings
        limits = ("max_upload_bytes", "max_bodies_bytes")  # the second is what an idle service has room for
        self._limited_by = min(limits, key=lambda name: getattr(settings, name))
        self._max_bytes: int = getattr(settings, self._limited_by)  # of one body
        self.bytes_in_work = 0

    def check(self, request: HTTPConnection) -> None:
        """Refuse what the header alone shows to be wrong. Raises UnsupportedEncoding, BodyTooLarge."""
        # A compressed body would have to be counted twice, and images are compressed already.
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise UnsupportedEncoding("Send the body without a content encoding.")
        declared = request.headers.get("Content-Length", "").lstrip("0")  # int() refuses thousands of digits
        self.check_size(int(declared) if declared.isdecimal() else 0)

    def check_size(self, size: int) -> None:
        """Raises BodyTooLarge for a body of so many bytes."""
        if size > self._max_bytes:
            setting = variable(self._limited_by)
            raise BodyTooLarge(
                f"The request body exceeds {self._max_bytes} bytes, the most that {setting} allows one request."
            )

    def check_room(self) -> None:
        """Raises Overloaded if all bodies together are too large."""
        if self.bytes_in_work > self.settings.max_bodies_bytes:
            raise Overloaded("The service is receiving too many bytes. Send this request again in a moment.")


class Body:
    """One request's body."""

    def __init__(self, bodies: Bodies, request: HTTPConnection, receive: Receive, *, stages: Stages) -> None:
        self._bodies = bodies
        self._receive = receive
        self._received = 0  # bytes
        headers = request.headers
        self.finished = headers.get("Content-Length", "0") == "0" and "Transfer-Encoding" not in headers
        self._stages = stages
        self._began = asyncio.get_running_loop().time()

    async def receive(self) -> Message:
        """Raises BodyTooLarge, SlowRequest, and Overloaded when all bodies together exceed their limit."""
        if self.finished:  # only the client's leaving can come, which may take its time
            return await self._receive()
        receive_s = self._bodies.settings.receive_timeout_s
        try:
            async with asyncio.timeout_at(self._began + receive_s):
                message = await self._receive()
        except TimeoutError:
            late = f"The request did not arrive within {receive_s:g} seconds (VIT_RECEIVE_TIMEOUT_S)."
            raise SlowRequest(late) from None
        size = len(message.get("body", b""))
        self._received += size
        self._bodies.bytes_in_work += size
        self._bodies.check_size(self._received)
        self._bodies.check_room()
        if not message.get("more_body", False):
            self.finished = True
            self._stages.add("receive", self._stages.began, time.perf_counter())
        return message

    def release(self) -> None:
        """The request is answered, or will be in a moment."""
        self._bodies.bytes_in_work -= self._received
        self._received = 0

    async def drop_rest(self) -> None:
        """Read what the client still sends, and drop it. If the connection were closed at once, the system would reset
        it, and the client would lose its answer.
        """
        self.release()
        with suppress(TimeoutError, asyncio.CancelledError):  # the server cancels when it ends
            async with asyncio.timeout(LINGER_S):
                while (await self._receive()).get("more_body"):
                    pass
