"""Limits that uvicorn's HTTP protocol lacks: on the size and time of a header, on the number of connections, and on the
answers that are not read; and a proper answer to a message that is not HTTP.

It relies on parts of uvicorn's `HttpToolsProtocol` that are not documented. pyproject.toml therefore bounds uvicorn's
version, and these names have to be looked at when it is raised:
- attributes: cycle, headers, loop, parser, pipeline, scope, server_state, transport, url
- methods: on_response_complete, shutdown, timeout_keep_alive_handler, _unset_keepalive_if_required, and the callbacks
  of httptools
- RequestResponseCycle: disconnected, keep_alive, message_event, more_body, response_complete, response_started, scope

uvicorn's other class, on h11, bounds a header by itself and knows no upgrades. But 100,000 chunks of a byte block the
event loop for 0.8 s in h11 (0.03 s here), it waits for more of a chunk whose lines end in LF, and it takes a request
with both Content-Length and chunks.
"""

import asyncio
import select
from typing import Any, cast

import httptools
from starlette.requests import HTTPConnection
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.door.answer import complete
from app.door.cors import Cors
from app.door.header import request_id
from app.door.places import Doing, Places
from app.door.problems import respond_to
from app.door.transport import FLUSH_S, LingeringTransport
from app.errors import HeaderTooLarge, MalformedRequest, ServiceError, SlowRequest
from app.telemetry.logs import access_log
from app.telemetry.request_state import RequestState

MAX_HEADER_BYTES = 16 * 1024
MAX_HEADER_FIELDS = 100
MAX_PIPELINED = 10  # requests that wait for the one ahead
HEADER_TIMEOUT_S = 5.0  # from the first byte of a request, or from connecting, until its header is there
TOO_LARGE = HeaderTooLarge(f"The header has more than {MAX_HEADER_BYTES} bytes.")


class GuardedProtocol(HttpToolsProtocol):
    """One connection. With too many at work its requests are marked `crowded`, and the door refuses all but probes."""

    def __init__(self, *args: Any, places: Places, cors: Cors, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._places = places
        self._cors = cors
        self._in_message = False  # a request has begun to arrive and is not complete
        self._refused = False  # nothing more is read from this connection
        self._parse_error: ServiceError = MalformedRequest("This is not a valid HTTP/1.1 request.")
        self._header_timer: asyncio.TimerHandle | None = None  # runs from the first byte of a header to its last
        self._unread_timer: asyncio.TimerHandle | None = None
        self._overhead = 0  # bytes that have come since the last that were a part of a body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn: it is always a Transport
        self._lingering = LingeringTransport(transport, sending=self._sending)
        super().connection_made(cast(asyncio.Transport, self._lingering))
        self._start_header_timer()
        self._places.enter(self._lingering)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        self._all_is_read()
        self._places.leave(self._lingering)
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # after a reset uvicorn lets this timer run and keep the connection
        # Break reference cycles, which would otherwise wait for Python's garbage collector.
        self._lingering.ended()
        self.pipeline.clear()
        self.cycle = None  # type: ignore[assignment]  # as uvicorn has it before the first request

    def data_received(self, data: bytes) -> None:
        if self._refused or self.transport.is_closing():
            return
        if not self._in_message:
            self._start_header_timer()
        self._overhead += len(data)
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
        self._take_place()
        if self._overhead > MAX_HEADER_BYTES:
            self._refuse(TOO_LARGE)

    def _head_without_upgrade(self) -> bytes:
        """The request's head without `Upgrade`, which is ignored (RFC 9110, 7.8). The request is parsed again from it,
        because httptools assumes that a request with an upgrade has no body. Java's client and `curl --http2` send
        `Upgrade: h2c` with every request.
        """
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        lines += [b"%b: %b" % field for field in self.headers if field[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def _answers(self) -> bool:
        """Whether a request is in work."""
        return self.cycle is not None and not self.cycle.response_complete

    def _take_place(self) -> None:
        doing: Doing = "work" if self._answers() else "idle"
        if self.flow.write_paused or (self._answers() and self.cycle.more_body and not self.pipeline):
            doing = "waiting"
        self._places.put(self._lingering, doing)

    def _sending(self) -> bool:
        """Whether more can come from the client. It can behind a request whose response ends the connection."""
        ends = self.cycle is not None and not self.cycle.keep_alive
        return ends or self._answers() or self._in_message or self._refused

    # The end of an idle connection. The system resets one that has bytes to read, and a request in them is lost.

    def shutdown(self) -> None:
        """The server stops. A request that comes is answered, and the last: the server adds `Connection: close`."""
        if self._answers() or not self._request_comes():
            super().shutdown()

    def timeout_keep_alive_handler(self) -> None:
        if not self._request_comes():
            super().timeout_keep_alive_handler()

    def _request_comes(self) -> bool:
        """Whether a request has begun to arrive, be it not read yet."""
        if self._in_message:
            return True
        if self.transport.is_closing():
            return False
        unread = select.poll()
        unread.register(self.transport.get_extra_info("socket"), select.POLLIN)
        return bool(unread.poll(0))

    # Parser callbacks. A ValueError stops the parser: the error's own traceback would tie it to this connection.

    def on_message_begin(self) -> None:
        self._in_message = True
        self._start_header_timer()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Also called for trailers after a chunked body, which are not part of the header (RFC 9110, 6.5.1)."""
        if self._header_timer is not None:
            super().on_header(name, value)
            if len(self.headers) > MAX_HEADER_FIELDS:
                self._parse_error = HeaderTooLarge(f"The header has more than {MAX_HEADER_FIELDS} fields.")
                raise ValueError

    def on_headers_complete(self) -> None:
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEADER_BYTES:
            self._parse_error = TOO_LARGE
            raise ValueError
        if self.parser.get_method() == b"CONNECT" or len(self.pipeline) == MAX_PIPELINED:
            raise ValueError  # there are no tunnels, and of too many requests the first are answered
        if self.parser.get_http_version() == "1.1" and sum(name == b"host" for name, _ in self.headers) != 1:
            self._parse_error = MalformedRequest("An HTTP/1.1 request needs one Host header.")
            raise ValueError
        if not self.url.startswith(b"/") and (url := httptools.parse_url(self.url)).path is None:
            self.url = b"/?%b" % url.query if url.query else b"/"  # as in `GET http://host`
        if not self.parser.should_upgrade():
            self._stop_header_timer()
            super().on_headers_complete()
            self._state = RequestState.of(self.scope)
            self._state.crowded = self._places.crowded

    def on_body(self, body: bytes) -> None:
        self._overhead = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return  # only the head was parsed
        self._in_message = False
        self._overhead = 0
        self._state.arrived = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle is not None:  # else the connection has ended
            self._take_place()

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
        if self._answers():
            self._start_header_timer()  # pipelined: nothing is read before the request ahead is answered
        elif self._in_message:
            self._refuse(SlowRequest(f"The header did not arrive within {HEADER_TIMEOUT_S:g} seconds."))
        elif not self._request_comes():
            self.transport.close()

    # The response's time

    def pause_writing(self) -> None:
        """More of a response is unread than the buffers should hold."""
        super().pause_writing()
        self._unread_timer = self.loop.call_later(FLUSH_S, self._lingering.reset)
        self._places.unread(self._lingering)
        self._take_place()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._all_is_read()
        self._take_place()

    def _all_is_read(self) -> None:
        self._places.read(self._lingering)
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    # Refusals

    def _refuse(self, error: ServiceError) -> None:
        """Stop reading. Answer the request that was understood, or else answer with `error`."""
        self._refused = True
        self._stop_header_timer()
        cycle = self.cycle
        if self._answers():
            if self.pipeline or not cycle.more_body or cycle.response_started:
                cycle.keep_alive = False
                return
            RequestState.of(cycle.scope).refusal = error
            cycle.disconnected = True  # so that code reading its body stops
            cycle.message_event.set()
        request = HTTPConnection({"type": "http", "path": "", "headers": self.headers or []})
        state = RequestState(request_id=request_id(request))
        facts = {"request_id": state.request_id, "status": int(error.status), "problem": error.kind}
        access_log.info("no request %d", error.status, extra={"fields": facts})  # Observation does not see it
        response = respond_to(error, state)  # as the door would
        complete(response.raw_headers, request, id=state.request_id, cors=self._cors, closing=True)
        fields = [b"%b: %b" % field for field in (*self.server_state.default_headers, *response.raw_headers)]
        status = f"HTTP/1.1 {error.status:d} {error.status.phrase}".encode()
        self.transport.write(b"\r\n".join([status, *fields, b"", bytes(response.body)]))
        self.transport.close()
