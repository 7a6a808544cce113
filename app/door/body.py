"""The body of a request, bounded in bytes and in time. At most its first 64 KiB are kept here."""

import asyncio
import time
from contextlib import suppress
from copy import copy

from starlette.requests import HTTPConnection
from starlette.types import Message, Receive

from app.errors import BodyTooLarge, Overloaded, ServiceError, SlowRequest, UnsupportedEncoding
from app.settings import Settings
from app.telemetry.stages import Stages

AHEAD_BYTES = 64 * 1024  # uvicorn stops reading after as many
SMALL_BYTES = 2**20
SHARE_OF_LARGE = 0.75  # of the bytes in work, which bodies of more than SMALL_BYTES may fill


class Bodies:
    """The limits, and the number of bytes in the bodies of all requests in work."""

    def __init__(self, *, settings: Settings) -> None:
        self.settings = settings
        together = settings.max_bodies_bytes
        alone = max(int(SHARE_OF_LARGE * together), min(SMALL_BYTES, together))  # what an idle service has room for
        limits = (settings.max_upload_bytes, "VIT_MAX_UPLOAD_BYTES"), (alone, "VIT_MAX_BODIES_BYTES")
        self.max_bytes, self._limited_by = min(limits)  # of one body
        self.bytes_in_work = 0
        self.arriving: set[Body] = set()

    def check(self, request: HTTPConnection) -> None:
        """Refuse what the header alone shows to be wrong. Raises UnsupportedEncoding, BodyTooLarge."""
        # A compressed body would have to be counted twice, and images are compressed already.
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise UnsupportedEncoding("Send the body without a content encoding.")
        declared = request.headers.get("Content-Length", "").lstrip("0")  # int() refuses thousands of digits
        if declared.isdecimal() and int(declared) > self.max_bytes:
            raise self.too_large()

    def make_room(self, body: "Body") -> None:
        """If this body exceeds what all may have, refuse the one that has held most for longest and is not complete.
        If it exceeds the share of large ones, that is a large one.

        If the newest were refused, one client that holds bodies back just below the limit would lock out all others.
        """
        large = body.received > SMALL_BYTES
        share = SHARE_OF_LARGE if large else 1.0
        if self.bytes_in_work > share * self.settings.max_bodies_bytes:
            now = asyncio.get_running_loop().time()
            payers = [one for one in self.arriving if one.received > SMALL_BYTES or not large]
            payer = max(payers, key=lambda one: one.received * (now - one.began))
            payer.refuse(Overloaded("The service is receiving too many bytes. Send this request again in a moment."))

    def too_large(self) -> BodyTooLarge:
        return BodyTooLarge(
            f"The request body exceeds {self.max_bytes} bytes, the most that {self._limited_by} allows one request."
        )


class Body:
    """One request's body. `receive` raises when a limit is exceeded."""

    def __init__(self, bodies: Bodies, request: HTTPConnection, receive: Receive, *, stages: Stages) -> None:
        self._bodies = bodies
        self._receive = receive
        self.received = 0  # bytes
        headers = request.headers
        self.finished = headers.get("Content-Length", "0") == "0" and "Transfer-Encoding" not in headers
        self._stages = stages
        self.began = asyncio.get_running_loop().time()
        self._refusal: ServiceError | None = None
        self._wait: asyncio.Timeout  # for the part that comes next, or came last
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
        if self.finished:  # only the client's leaving can come, which may take its time
            return await self._receive()
        self._bodies.arriving.add(self)
        settings = self._bodies.settings
        try:
            if self._refusal is None:
                async with asyncio.timeout_at(self.began + settings.receive_timeout_s) as self._wait:
                    message = await self._receive()
                self._count(message)
        except TimeoutError:
            late = f"The request did not arrive within {settings.receive_timeout_s:g} seconds (VIT_RECEIVE_TIMEOUT_S)."
            self._refusal = self._refusal or SlowRequest(late)
        if self._refusal or self.finished:
            self._bodies.arriving.discard(self)
            self._stages.add("receive", self._stages.began, time.perf_counter())
        if self._refusal:
            raise copy(self._refusal) from None  # its traceback holds this body: a cycle would keep the bytes
        return message

    def _count(self, message: Message) -> None:
        size = len(message.get("body", b""))
        self.received += size
        self._bodies.bytes_in_work += size
        if self.received > self._bodies.max_bytes:
            self._refusal = self._bodies.too_large()
        else:
            self._bodies.make_room(self)
        self.finished = self._refusal is None and not message.get("more_body", False)

    def refuse(self, error: ServiceError) -> None:
        """Raise it where this body is awaited now, or next."""
        self._refusal = error
        self.release()
        with suppress(RuntimeError):  # the wait is over
            self._wait.reschedule(self.began)

    def release(self) -> None:
        """The request is answered, or will be in a moment."""
        self._bodies.arriving.discard(self)
        self._bodies.bytes_in_work -= self.received
        self.received = 0
