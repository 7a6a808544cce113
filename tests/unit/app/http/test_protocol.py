"""app/http/protocol.py: memory of a connection, and which requests of it are answered."""

import asyncio
import gc
import socket
import struct
import weakref
from contextlib import suppress

import pytest
import uvicorn
from starlette.responses import Response
from uvicorn.server import ServerState

from app.http import protocol as module
from app.http.problems import respond_to
from app.http.protocol import GuardedProtocol
from app.telemetry.request_state import RequestState

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
CHUNKED = POST.replace(b"Content-Length: 100", b"Transfer-Encoding: chunked")


async def app(scope, receive, send):
    """Answers a request whose body is there."""
    while True:
        message = await receive()
        if refusal := RequestState.of(scope).refusal:
            await respond_to(refusal, RequestState.of(scope))(scope, receive, send)
            return
        if message["type"] == "http.disconnect":
            return
        if not message["more_body"]:
            break
    await Response("hello")(scope, receive, send)


async def leave(writer):
    writer.close()
    with suppress(ConnectionResetError):
        await writer.wait_closed()


def answered(request: bytes, status: bytes, *, until: bytes = b"\r\n"):
    """A client that sends `request`, reads until `until`, and leaves."""

    async def client(reader, writer):
        writer.write(request)
        assert status in await reader.readuntil(until)
        await leave(writer)

    return client


async def reset(reader, writer):
    writer.write(GET)
    await reader.readuntil(b"hello")
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await leave(writer)


def gone(request: bytes, *, after_s: float = 0.0):
    """A client that sends `request` and leaves."""

    async def client(reader, writer):
        writer.write(request)
        await asyncio.sleep(after_s)
        await leave(writer)

    return client


CLIENTS = {
    "answered": answered(GET, b"200", until=b"hello"),
    "upgraded": answered(GET.replace(b"Host", b"Connection: upgrade\r\nUpgrade: h2c\r\nHost"), b"200", until=b"hello"),
    "reset": reset,
    "left early": gone(POST, after_s=0.05),
    "no HTTP": answered(b"no HTTP\r\n\r\n", b"400"),
    "no chunk": answered(CHUNKED + b"5\r\nhello\r\nno", b"400"),
    "header too large": answered(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 102, b"431"),
}


async def served(client, application=app, *, max_connections=9):
    """What the client of one connection returns. By then nothing refers to the connection any more."""
    state = ServerState()
    config = uvicorn.Config(application, log_config=None)
    config.load()
    made: list[weakref.ref[GuardedProtocol]] = []

    def protocol():
        one = GuardedProtocol(config=config, server_state=state, app_state={}, max_connections=max_connections)
        made.append(weakref.ref(one))
        return one

    async with await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        found = await client(reader, writer)
        while not made or made[0]():  # its task may have a step to go
            await asyncio.sleep(0.01)
        writer.close()
    return found


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS.keys())
async def test_a_closed_connection_leaves_no_reference_cycle(client):
    gc.disable()
    try:
        await served(client)  # which does not return before the connection is gone
    finally:
        gc.enable()


async def test_a_message_that_is_no_request_has_a_line_in_the_log(caplog):
    caplog.set_level("INFO", "app.access")
    await served(CLIENTS["no HTTP"])
    (line,) = caplog.records
    assert line.fields == {"request_id": line.fields["request_id"], "status": 400, "problem": "malformed-request"}


async def test_the_newest_of_too_many_connections_is_refused_and_closed():
    async def client(reader, writer):
        other, its_writer = await asyncio.open_connection(*writer.get_extra_info("peername"))
        refusal = await other.read()
        await leave(its_writer)
        await answered(GET, b"200", until=b"hello")(reader, writer)
        return refusal

    refusal = await served(client, max_connections=1)
    assert refusal.startswith(b"HTTP/1.1 503 ")
    assert b"connection: close" in refusal


async def test_a_client_that_leaves_is_told_to_the_request_in_work_also_if_others_wait_behind_it():
    told = []

    async def waiting(scope, receive, send):
        await receive()
        told.append((await receive())["type"])

    async def client(reader, writer):
        writer.write(GET + GET)
        await asyncio.sleep(0.1)
        await leave(writer)

    await served(client, waiting)
    assert told == ["http.disconnect"]


@pytest.mark.parametrize("body", [b"", bytes(200_000)])
async def test_work_for_a_client_that_leaves_is_cancelled(body):
    """Also where its whole body was more than the server reads ahead."""
    cancelled = []

    async def working(scope, receive, send):
        state = RequestState.of(scope)
        state.task = asyncio.current_task()
        while (await receive())["more_body"]:
            pass
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 5)
        except asyncio.CancelledError:
            cancelled.append(state.left)

    async def client(reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await asyncio.sleep(0.1)
        await leave(writer)

    await served(client, working)
    assert cancelled == [True]


async def test_fields_after_a_chunked_body_are_no_part_of_the_header():
    seen = []

    async def noting(scope, receive, send):
        await app(scope, receive, send)
        seen.extend(name for name, _ in scope["headers"])

    await served(answered(CHUNKED + b"1\r\nx\r\n0\r\nX-API-Key: key\r\n\r\n", b"200", until=b"hello"), noting)
    assert seen == [b"host", b"transfer-encoding"]


async def test_a_client_that_does_not_read_its_response_is_dropped(monkeypatch):
    async def reading_nothing(reader, writer):
        writer.write(GET)

    monkeypatch.setattr(module, "READ_TIMEOUT_S", 0.05)
    await served(reading_nothing, Response(bytes(50_000_000)))  # which does not return before the connection is gone


async def test_an_early_answer_reaches_a_client_that_is_still_sending():
    """And not a reset. The server reads what the client sends before it closes."""

    async def client(reader, writer):
        writer.write(b"no HTTP\r\n\r\n" + bytes(10**7))
        writer.write_eof()
        answer = await reader.read()
        await leave(writer)
        return answer

    assert b" 400 " in await served(client)
