"""Limits that uvicorn's HTTP protocol lacks: on the size and time of a header, on the number of connections and of
requests in one, and on the time in which a response is read; and a proper answer to a message that is not HTTP.

It relies on parts of uvicorn's `HttpToolsProtocol` that are not documented. pyproject.toml therefore bounds uvicorn's
version, and these names have to be looked at when it is raised:
- attributes: connections, cycle, headers, loop, parser, pipeline, scope, server_state, transport, url
- methods: _start_asgi_task, _unset_keepalive_if_required, and the callbacks of httptools
- RequestResponseCycle: disconnected, keep_alive, message_event, more_body, response_complete, response_started, scope

uvicorn's other class, on h11, bounds a header by itself and knows no upgrades. But 100,000 chunks of a byte block the
event loop for 0.8 s in h11 (0.03 s here), it waits for more of a chunk whose lines end in LF, and it takes a request
with both Content-Length and chunks.
"""

import asyncio
from typing import Any, cast

import httptools
from starlette.requests import HTTPConnection
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.door.answer import complete
from app.door.cors import Cors
from app.door.header import request_id
from app.door.problems import respond_to
from app.door.transport import FLUSH_S, LingeringTransport
from app.errors import HeaderTooLarge, MalformedRequest, ServiceError, SlowRequest
from app.telemetry.logs import access_log

MAX_HEADER_BYTES = 16 * 1024
MAX_HEADER_FIELDS = 100
MAX_PIPELINED = 100  # requests that wait for the one ahead; each takes 2.5 kB
HEADER_TIMEOUT_S = 5.0  # from the first byte of a request, or from connecting, until its header is there


class GuardedProtocol(HttpToolsProtocol):
    """One connection. With more than `max_connections` open its requests are marked `crowded`, and the door refuses all
    but probes. With more than twice as many it is dropped.
    """

    __slots__ = (  # as entries of the instance's dictionary they would take 1.3 kB more for each connection
        "_cors",
        "_header_bytes",
        "_header_fields",
        "_header_timer",
        "_in_header",
        "_in_message",
        "_max_connections",
        "_parse_error",
        "_refused",
        "_running",
        "_unparsed",
        "_unread_timer",
    )

    def __init__(self, *args: Any, max_connections: int, cors: Cors, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._max_connections = max_connections
        self._cors = cors
        self._in_message = False  # a request has begun to arrive and is not complete
        self._refused = False  # nothing more is read from this connection
        self._parse_error: ServiceError = MalformedRequest("This is not a valid HTTP/1.1 request.")
        self._header_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        self._running: RequestResponseCycle | None = None  # of pipelined requests the first; `cycle` is the last
        self._in_header = False
        self._header_bytes = self._header_fields = 0
        self._unparsed = 0  # bytes since the parser's last callback

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn: it is always a Transport
        lingering = LingeringTransport(transport, sending=lambda: not self._is_idle())
        super().connection_made(cast(asyncio.Transport, lingering))
        if len(self.connections) > 2 * self._max_connections:
            transport.abort()
        else:
            self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        self._stop_unread_timer()
        if self._running is not None:  # uvicorn tells only the last of pipelined requests
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # after a reset uvicorn lets this timer run and keep the connection
        # Break reference cycles, which would otherwise wait for Python's garbage collector.
        cast(LingeringTransport, self.transport).ended()
        self.pipeline.clear()
        self._running = self.cycle = None  # type: ignore[assignment]  # as uvicorn has it before the first request

    def data_received(self, data: bytes) -> None:
        if self._refused or self.transport.is_closing():
            return
        if not self._in_message:
            self._start_header_timer()
        self._unparsed += len(data)
        self._unset_keepalive_if_required()
        while data:
            try:
                self.parser.feed_data(data)
                break
            except httptools.HttpParserError:
                self._refuse(self._parse_error)
                return
            except httptools.HttpParserUpgrade as upgrade:
                (end_of_head,) = upgrade.args
                data = self._head_without_upgrade() + data[end_of_head:]
                self.parser = httptools.HttpRequestParser(self)
        if self._unparsed > MAX_HEADER_BYTES:
            self._refuse(HeaderTooLarge(f"A header field is larger than {MAX_HEADER_BYTES} bytes."))

    def _head_without_upgrade(self) -> bytes:
        """The request's head without `Upgrade`, which is ignored (RFC 9110, 7.8). The request is parsed again from it,
        because httptools assumes that a request with an upgrade has no body. Java's client and `curl --http2` send
        `Upgrade: h2c` with every request.
        """
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        lines += [b"%b: %b" % field for field in self.headers if field[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def _is_idle(self) -> bool:
        """Whether nothing more can come from the client. More can come behind a request whose response ends the
        connection.
        """
        answered = self.cycle is None or (self.cycle.response_complete and self.cycle.keep_alive)
        return answered and not self._in_message and not self._refused

    # Parser callbacks

    def on_message_begin(self) -> None:
        self._in_message = self._in_header = True
        self._header_bytes = self._header_fields = self._unparsed = 0
        self._start_header_timer()
        super().on_message_begin()
        self.scope["state"]["crowded"] = len(self.connections) > self._max_connections

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Also called for trailers after a chunked body, which are no part of the header (RFC 9110, 6.5.1)."""
        self._header_fields += 1
        self._count(len(name) + len(value))
        if self._in_header:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stop_header_timer()
        self._in_header = False
        if self.parser.get_method() == b"CONNECT" or len(self.pipeline) == MAX_PIPELINED:
            raise ValueError  # there are no tunnels, and of too many requests the first are answered
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return  # only the head was parsed
        self._in_message = False
        self._unparsed = 0
        self.scope["state"]["arrived"] = True
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _count(self, size: int) -> None:
        self._unparsed = 0
        self._header_bytes += size
        if self._header_bytes > MAX_HEADER_BYTES or self._header_fields > MAX_HEADER_FIELDS:
            detail = f"The header exceeds {MAX_HEADER_FIELDS} fields or {MAX_HEADER_BYTES} bytes."
            self._parse_error = HeaderTooLarge(detail)
            raise ValueError  # stops the parser; the error's own traceback would tie it to this connection

    # The header's time

    def _start_header_timer(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(HEADER_TIMEOUT_S, self._header_is_late)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _header_is_late(self) -> None:
        self._header_timer = None
        if self.cycle is not None and not self.cycle.response_complete:
            self._start_header_timer()  # pipelined: nothing is read before the request ahead is answered
        elif self._in_message:
            self._refuse(SlowRequest(f"The header did not arrive within {HEADER_TIMEOUT_S:g} seconds."))
        else:
            self.transport.close()

    # The response's time

    def pause_writing(self) -> None:
        """More of a response is unread than the buffers should hold."""
        super().pause_writing()
        self._unread_timer = self.loop.call_later(FLUSH_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_unread_timer()

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    # Refusals

    def _refuse(self, error: ServiceError) -> None:
        """Stop reading. Answer the request that was understood, or else answer with `error`."""
        self._refused = True
        self._stop_header_timer()
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if self.pipeline or not cycle.more_body or cycle.response_started:
                cycle.keep_alive = False
                return
            cycle.scope["state"]["refusal"] = error
            cycle.disconnected = True  # so that code reading its body stops
            cycle.message_event.set()
        state: dict[str, Any] = {}
        request = HTTPConnection({"type": "http", "path": "", "headers": self.headers or [], "state": state})
        state["request_id"] = request_id(request)
        facts = {**state, "status": int(error.status), "problem": error.kind}
        access_log.info("no request %d", error.status, extra={"fields": facts})  # Observation does not see it
        response = respond_to(error, state)  # as the door would
        complete(response.headers, request, cors=self._cors, closing=True)
        fields = [b"%b: %b" % field for field in (*self.server_state.default_headers, *response.raw_headers)]
        status = f"HTTP/1.1 {error.status:d} {error.status.phrase}".encode()
        self.transport.write(b"\r\n".join([status, *fields, b"", bytes(response.body)]))
        self.transport.close()
