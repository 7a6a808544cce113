"""The body of a request, bounded in bytes and in time. At most its first 64 KiB are kept here."""

import asyncio
import time

from starlette.requests import HTTPConnection
from starlette.types import Message, Receive

from app.errors import BodyTooLarge, Overloaded, ServiceError, SlowRequest, UnsupportedEncoding
from app.settings import Settings
from app.telemetry.stages import Stages

AHEAD_BYTES = 64 * 1024  # uvicorn stops reading after as many


class Bodies:
    """The limits, and the number of bytes in the bodies of all requests in work."""

    def __init__(self, *, settings: Settings) -> None:
        self.settings = settings
        self.bytes_in_work = 0

    def check(self, request: HTTPConnection) -> None:
        """Refuse what the header alone shows to be wrong. Raises UnsupportedEncoding, BodyTooLarge."""
        # A compressed body would have to be counted twice, and images are compressed already.
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise UnsupportedEncoding("Send the body without a content encoding.")
        declared = request.headers.get("Content-Length", "").lstrip("0")  # int() refuses thousands of digits
        if declared.isdecimal() and int(declared) > self.settings.max_upload_bytes:
            raise self.too_large()

    def too_large(self) -> BodyTooLarge:
        return BodyTooLarge(f"The request body exceeds {self.settings.max_upload_bytes} bytes (VIT_MAX_UPLOAD_BYTES).")


class Body:
    """One request's body. `receive` raises when a limit is exceeded."""

    def __init__(self, bodies: Bodies, request: HTTPConnection, receive: Receive) -> None:
        self._bodies = bodies
        self._receive = receive
        self._received = 0
        headers = request.headers
        self.finished = headers.get("Content-Length", "0") == "0" and "Transfer-Encoding" not in headers
        self._stages: Stages = request.state.stages
        self._until = asyncio.get_running_loop().time() + bodies.settings.receive_timeout_s
        self._ahead: Message | None = None  # received, and not yet read

    async def arrive(self) -> None:
        """Wait for the end of the body, or for AHEAD_BYTES of it. Raises what `receive` raises.

        A request that waits here for a slow client takes half the memory of one that waits inside the framework.
        """
        if self.finished:
            return
        body = bytearray()
        ended = False
        while not self.finished and len(body) < AHEAD_BYTES:
            message = await self.receive()
            body += message.get("body", b"")
            ended = message["type"] == "http.request" and self.finished  # else the client has left
        self._ahead = {"type": "http.request", "body": bytes(body), "more_body": not ended}

    async def receive(self) -> Message:
        """Raises BodyTooLarge, SlowRequest, and Overloaded when all bodies together exceed their limit."""
        if self._ahead is not None:
            message, self._ahead = self._ahead, None
            return message
        expected = not self.finished
        try:
            # After its end only the client's leaving can come, which may take its time.
            async with asyncio.timeout_at(self._until if expected else None):
                message = await self._receive()
        except TimeoutError:
            self._record_receive_time()
            limit = f"{self._bodies.settings.receive_timeout_s:g} seconds"
            raise SlowRequest(f"The request did not arrive within {limit} (VIT_RECEIVE_TIMEOUT_S).") from None
        size = len(message.get("body", b""))
        self._received += size
        self._bodies.bytes_in_work += size
        refusal: ServiceError | None = None
        if self._received > self._bodies.settings.max_upload_bytes:
            refusal = self._bodies.too_large()
        elif self._bodies.bytes_in_work > self._bodies.settings.max_intake_bytes:
            refusal = Overloaded("The service is receiving too many bytes. Send this request again in a moment.")
        else:
            self.finished = not message.get("more_body", False)
        if refusal or (expected and self.finished):
            self._record_receive_time()
        if refusal:
            raise refusal
        return message

    def _record_receive_time(self) -> None:
        self._stages.add("receive", self._stages.began, time.perf_counter())

    def release(self) -> None:
        """The request is answered."""
        self._bodies.bytes_in_work -= self._received
