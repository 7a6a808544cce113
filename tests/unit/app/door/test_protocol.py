"""app/door/protocol.py: memory of a closed connection."""

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

from app.door.cors import Cors
from app.door.protocol import GuardedProtocol

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


async def left_early(reader, writer):
    writer.write(POST)
    await asyncio.sleep(0.05)
    await leave(writer)


async def left_with_requests_in_the_pipeline(reader, writer):
    writer.write(POST + bytes(100) + 10 * GET)
    await leave(writer)


CLIENTS = {
    "answered": answered(GET, b"200", until=b"hello"),
    "upgraded": answered(GET.replace(b"Host", b"Connection: upgrade\r\nUpgrade: h2c\r\nHost"), b"200", until=b"hello"),
    "reset": reset,
    "left early": left_early,
    "left with requests in the pipeline": left_with_requests_in_the_pipeline,
    "no HTTP": answered(b"no HTTP\r\n\r\n", b"400"),
    "no chunk": answered(
        POST.replace(b"Content-Length: 100", b"Transfer-Encoding: chunked") + b"5\r\nhello\r\nno", b"400"
    ),
    "header too large": answered(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 102, b"431"),
}


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS.keys())
def test_a_closed_connection_leaves_no_reference_cycle(client):
    config = uvicorn.Config(app, log_config=None)
    config.load()
    made: list[weakref.ref[GuardedProtocol]] = []

    def protocol():
        one = GuardedProtocol(config=config, server_state=ServerState(), app_state={}, max_connections=9, cors=Cors([]))
        made.append(weakref.ref(one))
        return one

    async def scenario():
        server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
        async with server:
            await client(*await asyncio.open_connection(*server.sockets[0].getsockname()))
            while not made or any(one() for one in made):  # its task may have a step to go
                await asyncio.sleep(0.01)

    gc.disable()
    try:
        asyncio.run(asyncio.wait_for(scenario(), 30))
    finally:
        gc.enable()
    assert len(made) == 1
