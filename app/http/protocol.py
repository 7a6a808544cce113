"""Limits that uvicorn's HTTP protocol lacks: on the size and time of a header, on the number of connections, and on the
time to read an answer; and a proper answer to a message that is not HTTP.

It relies on parts of uvicorn's `HttpToolsProtocol` that are not documented. pyproject.toml therefore bounds uvicorn's
version, and these names have to be looked at when it is raised:
- attributes: connections, cycle, flow, headers, loop, parser, pipeline, scope, server_state, transport, url
- methods: _start_asgi_task, _unset_keepalive_if_required, and the callbacks of httptools
- RequestResponseCycle: disconnected, keep_alive, message_event, more_body, response_complete, response_started, scope

uvicorn's other class, on h11, bounds a header by itself and knows no upgrades. But 100,000 chunks of a byte block the
event loop for 0.8 s in h11 (0.03 s here), it waits for more of a chunk whose lines end in LF, and it takes a request
with both Content-Length and chunks.
"""

import asyncio
from typing import Any

import httptools
from starlette.requests import HTTPConnection
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.errors import HeaderTooLarge, MalformedRequest, Overloaded, ServiceError, SlowRequest
from app.http.access_log import with_identity
from app.http.body import LINGER_S
from app.http.guard import request_id
from app.http.problems import respond_to
from app.telemetry.logs import access_log
from app.telemetry.request_state import RequestState

MAX_HEADER_BYTES = 16 * 1024
MAX_HEADER_FIELDS = 100
MAX_HEADER_SEPARATORS = 500  # of parameters, segments of a path, members of lists: each costs its parser time
HEADER_TIMEOUT_S = 5.0  # from the first byte of a request, or from connecting, until its header is there
READ_TIMEOUT_S = 60.0  # for a client to read an answer that does not fit the buffers
TOO_LARGE = HeaderTooLarge(f"The header has more than {MAX_HEADER_BYTES} bytes.")


class GuardedProtocol(HttpToolsProtocol):
    """One connection, which is refused if there are `max_connections` others."""

    def __init__(self, *args: Any, max_connections: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._max_connections = max_connections
        self._in_message = False  # a request has begun to arrive and is not complete
        self._refused = False  # nothing more is read from this connection
        self._parse_error: ServiceError = MalformedRequest("This is not a valid HTTP/1.1 request.")
        self._timer: asyncio.TimerHandle | None = None  # until the last byte of a header, and after a refusal
        self._unread_timer: asyncio.TimerHandle | None = None
        self._overhead = 0  # bytes that have come since the last that were a part of a body
        self._in_work: RequestResponseCycle | None = None  # others may wait behind it in `pipeline`

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn: it is always a Transport
        super().connection_made(transport)
        if len(self.connections) > self._max_connections:
            self._answer(Overloaded("Too many connections are open. Send this request again in a moment."))
            transport.close()
        else:
            self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._all_is_read()
        super().connection_lost(exc)
        if self._in_work is not None and not self._in_work.response_complete:
            self._in_work.disconnected = True  # uvicorn tells only the last of several pipelined requests
            self._in_work.message_event.set()
            RequestState.of(self._in_work.scope).leave()
        self._unset_keepalive_if_required()  # after a reset uvicorn lets this timer run and keep the connection
        # Break reference cycles, which would otherwise wait for Python's garbage collector.
        self.pipeline.clear()
        self._in_work = None
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

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._in_work = cycle
        super()._start_asgi_task(cycle, app)

    def _answers(self) -> bool:
        """Whether a request is in work."""
        return self.cycle is not None and not self.cycle.response_complete

    # Parser callbacks. A ValueError stops the parser: the error's own traceback would tie it to this connection.

    def on_message_begin(self) -> None:
        self._in_message = True
        self._start_header_timer()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Also called for trailers after a chunked body, which are not part of the header (RFC 9110, 6.5.1)."""
        if self._timer is not None:
            super().on_header(name, value)
            if len(self.headers) > MAX_HEADER_FIELDS:
                self._parse_error = HeaderTooLarge(f"The header has more than {MAX_HEADER_FIELDS} fields.")
                raise ValueError

    def on_headers_complete(self) -> None:
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEADER_BYTES:
            self._parse_error = TOO_LARGE
            raise ValueError
        separators = sum(map(self.url.count, (b"/", b"&")))
        separators += sum(value.count(b",") + value.count(b";") for _, value in self.headers)
        if separators > MAX_HEADER_SEPARATORS:
            self._parse_error = HeaderTooLarge(f"The header has more than {MAX_HEADER_SEPARATORS} separators.")
            raise ValueError
        if self.parser.get_method() == b"CONNECT":  # to httptools an upgrade, with or without the field
            raise ValueError
        hosts = [name for name, _ in self.headers].count(b"host")
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):  # RFC 9112, 3.2
            raise ValueError
        if not self.parser.should_upgrade():
            self._stop_timer()
            super().on_headers_complete()
            self._state = RequestState.of(self.scope)

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
        if not self.pipeline:  # uvicorn has paused a large body, and would not see that the client leaves
            self.flow.resume_reading()

    # The header's time

    def _start_header_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(HEADER_TIMEOUT_S, self._header_is_late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _header_is_late(self) -> None:
        self._timer = None
        if self._in_message:
            self._refuse(SlowRequest(f"The header did not arrive within {HEADER_TIMEOUT_S:g} seconds."))
        elif not self._answers():
            self.transport.close()

    # The answer's time

    def pause_writing(self) -> None:
        """More of an answer is unread than the buffers should hold."""
        super().pause_writing()
        self._unread_timer = self.loop.call_later(READ_TIMEOUT_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._all_is_read()

    def _all_is_read(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    # Refusals

    def _refuse(self, error: ServiceError) -> None:
        """Stop reading. Let the request that was understood be answered, or else answer with `error`."""
        self._refused = True
        self._stop_timer()
        cycle = self.cycle
        if self._answers():
            cycle.keep_alive = False
            if cycle.more_body and not (self.pipeline or cycle.response_started):
                RequestState.of(cycle.scope).refusal = error
                cycle.message_event.set()  # so that code reading its body stops
            return
        self._answer(error)
        # If the connection were closed now, the system would reset it as soon as more came, and the answer be lost.
        self.transport.write_eof()
        self.flow.resume_reading()
        self._timer = self.loop.call_later(LINGER_S, self.transport.close)

    def _answer(self, error: ServiceError) -> None:
        """For a message that is no request: neither middleware sees it."""
        request = HTTPConnection({"type": "http", "headers": self.headers or []})
        state = RequestState(request_id=request_id(request))
        facts = {"request_id": state.request_id, "status": int(error.status), "problem": error.kind}
        access_log.info("no request %d", error.status, extra={"fields": facts})
        response = respond_to(error, state)
        answered = [*self.server_state.default_headers, *with_identity(response.raw_headers, state)]
        fields = [b"%b: %b" % field for field in (*answered, (b"connection", b"close"))]
        status = f"HTTP/1.1 {error.status:d} {error.status.phrase}".encode()
        self.transport.write(b"\r\n".join([status, *fields, b"", bytes(response.body)]))
