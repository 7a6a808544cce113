"""app/door/protocol.py: memory of a connection, and which requests of it are answered."""

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

from app.door import protocol as module
from app.door.cors import Cors
from app.door.places import Places
from app.door.protocol import MAX_PIPELINED, GuardedProtocol
from app.telemetry.request_state import RequestState

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
CHUNKED = POST.replace(b"Content-Length: 100", b"Transfer-Encoding: chunked")


async def app(scope, receive, send):
    """Answers a request whose body is there."""
    while True:
        message = await receive()
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


async def served(client, application=app, *, places: Places | None = None):
    """What the client of one connection returns. By then nothing refers to the connection any more."""
    places = places or Places(at_work=9)
    config = uvicorn.Config(application, log_config=None)
    config.load()
    made: list[weakref.ref[GuardedProtocol]] = []

    def protocol():
        one = GuardedProtocol(config=config, server_state=ServerState(), app_state={}, places=places, cors=Cors([]))
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


async def test_of_too_many_pipelined_requests_the_first_are_answered():
    async def pipelining(reader, writer):
        writer.write(GET * (MAX_PIPELINED + 100))
        answers = await reader.read()
        await leave(writer)
        return answers

    assert (await served(pipelining)).count(b"200 OK") == MAX_PIPELINED + 1


@pytest.mark.parametrize("http", [b"1.0", b"1.1"])
@pytest.mark.parametrize("hosts", [0, 1, 2])
async def test_http_1_1_needs_one_host(http, hosts):
    """RFC 9112, 3.2"""
    status = b"200" if hosts == 1 or http == b"1.0" else b"400"
    await served(answered(b"GET / HTTP/%b\r\n%b\r\n" % (http, b"Host: x\r\n" * hosts), b" %b " % status))


@pytest.mark.parametrize(("target", "found"), [(b"http://x", "/"), (b"http://x?a=1", "/?a=1"), (b"http://x/y", "/y")])
async def test_the_host_in_a_target_is_left_out(target, found):
    seen = []

    async def noting(scope, receive, send):
        await app(scope, receive, send)
        seen.append(scope["path"] + ("?" if scope["query_string"] else "") + scope["query_string"].decode())

    await served(answered(GET.replace(b"/", target, 1), b"200", until=b"hello"), noting)
    assert seen == [found]


async def test_only_a_request_that_has_arrived_takes_a_place_at_work():
    crowded: list[bool] = []

    async def noting(scope, receive, send):
        crowded.append(RequestState.of(scope).crowded)
        if len(crowded) == 2:
            await ask(GET)  # from a second connection, while this one is at work
        await app(scope, receive, send)

    async def ask(request: bytes):
        reader, writer = await asyncio.open_connection(*address)
        await answered(request, b"200", until=b"hello")(reader, writer)

    async def client(reader, writer):
        nonlocal address
        address = writer.get_extra_info("peername")
        writer.write(POST)  # without its body
        while not crowded:
            await asyncio.sleep(0.01)
        await ask(GET)
        await leave(writer)

    address = ()
    await served(client, noting, places=Places(at_work=1))
    assert crowded == [False, False, True]


async def test_an_answer_that_is_not_read_takes_no_place_at_work_and_again_one_when_it_is():
    places, crowded = Places(at_work=1), []

    async def in_pieces(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(50):  # more than the system keeps; each waits until the ones before are read
            await send({"type": "http.response.body", "body": bytes(10**6), "more_body": True})
        crowded.append(places.crowded)
        await send({"type": "http.response.body", "body": b"end"})

    async def client(reader, writer):
        writer.write(GET)
        await reader.readexactly(1)
        while places.crowded:
            await asyncio.sleep(0.01)
        while not crowded:
            await reader.read(2**20)
        await leave(writer)

    await served(client, in_pieces, places=places)
    assert crowded == [True]


async def test_a_request_whose_body_is_missing_takes_no_place_at_work_behind_another():
    places = Places(at_work=1)

    async def client(reader, writer):
        writer.write(GET + POST)
        await reader.readuntil(b"hello")
        while places.crowded:
            await asyncio.sleep(0.01)
        await leave(writer)

    await served(client, places=places)


async def test_an_answer_that_goes_on_after_its_connection_takes_no_place(monkeypatch):
    places, moves = Places(at_work=1), []
    put = places.put

    def noted(connection, doing):
        moves.append(doing)
        put(connection, doing)

    monkeypatch.setattr(places, "put", noted)

    async def going_on(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while places.crowded:
            await send({"type": "http.response.body", "body": b"hello", "more_body": True})
            await asyncio.sleep(0.01)
        await send({"type": "http.response.body"})

    async def client(reader, writer):
        writer.write(GET + GET)  # with a second request uvicorn does not tell the first that the client has left
        await reader.readuntil(b"hello")
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await leave(writer)

    await served(client, going_on, places=places)
    assert moves.count("idle") == 1  # when it came


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

    monkeypatch.setattr(module, "FLUSH_S", 0.05)
    await served(reading_nothing, Response(bytes(50_000_000)))  # which does not return before the connection is gone


@pytest.mark.parametrize(
    ("end", "read"),
    [
        ("shutdown", 0),
        ("shutdown", 20),
        ("timeout_keep_alive_handler", 0),
        ("timeout_keep_alive_handler", 20),
        ("_header_is_late", 0),
    ],
)
async def test_an_idle_connection_does_not_end_when_a_request_has_come(end, read):
    class Seen(Places):
        def enter(self, connection):
            self.connection = connection
            super().enter(connection)

    async def client(reader, writer):
        writer.write(GET)
        await reader.readuntil(b"hello")
        writer.write(GET[:read])
        await asyncio.sleep(0.1)
        writer.write(GET[read:])  # the server has no turn to read it
        getattr(places.connection.get_protocol(), end)()
        assert await reader.readuntil(b"hello")
        getattr(places.connection.get_protocol(), end)()
        assert await reader.read() == b""
        del places.connection

    places = Seen(at_work=9)
    await served(client, places=places)
