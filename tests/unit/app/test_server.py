"""app/server.py: why a process does not start, in one sentence, before the model is loaded; and how it ends."""

import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from app import server
from app.settings import VERSION, Settings
from tests.support.processes import eventually


@pytest.fixture
def refused(monkeypatch, capsys) -> Callable[..., tuple[int, str]]:
    """Exit code and sentence. The bundle is missing, so whatever else is said was found before it was read."""
    monkeypatch.setattr(server, "configure", lambda *_: None)

    def started(**variables: object) -> tuple[int, str]:
        for name, value in {"port": 0, "bundle": "nowhere", **variables}.items():
            monkeypatch.setenv(f"VIT_{name.upper()}", str(value))
        with pytest.raises(SystemExit) as ended:
            server.load()
        said = capsys.readouterr().err
        assert said.startswith("cannot start: ")
        assert said.count("\n") == 1
        return ended.value.code, said.removeprefix("cannot start: ").rstrip()

    return started


@pytest.mark.parametrize(
    ("variables", "code", "begins"),
    [
        ({}, 3, "nowhere does not exist (VIT_BUNDLE)"),
        ({"max_batch": -1}, 2, "VIT_MAX_BATCH: "),
        ({"api_keys": "two words"}, 3, "An API key consists of letters"),
        *(({"host": host}, 3, f"port 0 of {host} (VIT_PORT, VIT_HOST): ") for host in ("203.0.113.1", "2001:db8::1")),
    ],
)
def test_what_stops_the_start_is_said_in_one_sentence(refused, variables, code, begins):
    """The addresses are reserved for documentation."""
    assert (found := refused(**variables))[0] == code
    assert found[1].startswith(begins)


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as ended:
        server.load(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (None, f"vit-serve {VERSION}\n")


@pytest.mark.parametrize("field", ["port", "metrics_port"])
def test_a_port_in_use(refused, field):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        said = f"port {taken} of 127.0.0.1 (VIT_{field.upper()}, VIT_HOST): Address already in use"
        assert refused(**{field: taken}) == (3, said)


def test_an_installation_that_lacks_a_part_ends_the_process(monkeypatch):
    """No thread is left, which Python would wait for."""
    monkeypatch.setattr(server, "configure", lambda *_: None)
    monkeypatch.setenv("VIT_PORT", "0")
    monkeypatch.setitem(sys.modules, "app.main", None)
    before = threading.active_count()
    with pytest.raises(ImportError, match=r"app\.main"):
        server.load()
    eventually(lambda: threading.active_count() == before)


def test_a_port_that_another_process_takes_while_the_model_loads():
    """Both have bound it, which the system allows until one listens."""
    first, second = socket.socket(), socket.socket()
    with first, second:
        for bound in (first, second):
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        first.bind(("127.0.0.1", 0))
        second.bind(first.getsockname())
        server._listen([first], 1)
        with pytest.raises(OSError, match="in use"):
            server._listen([second], 1)


def test_the_system_holds_little_of_an_answer_that_nobody_reads():
    with server._bind(Settings(port=0), "port") as bound, socket.socket() as client:
        bound.listen()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(bound.getsockname())
        served, _ = bound.accept()
        with served:
            served.setblocking(False)
            sent = 0
            with suppress(BlockingIOError):
                while True:
                    sent += served.send(bytes(16 * 1024))
    assert sent < 4 * server.UNSENT_BYTES  # else it is megabytes


@pytest.mark.parametrize(("files", "connections"), [(10_000, 2048), (100, 36), (10, 1)])
def test_connections_fit_the_open_files_that_the_system_allows(monkeypatch, caplog, files, connections):
    monkeypatch.setattr(server, "allow_open_files", lambda wanted: files)
    assert server.max_connections() == connections
    assert (f"the system allows {files} open files" in caplog.text) == (connections < 2048)


LEFT_BEHIND = """
import asyncio, time, uvicorn
from app.lifecycle import Lifecycle
from app.server import Server

async def app(scope, receive, send):
    await receive()
    asyncio.get_running_loop().run_in_executor(None, time.sleep, 60)
    await send({"type": "lifespan.startup.complete"})
    server.should_exit = True
    await receive()
    await send({"type": "lifespan.shutdown.complete"})

server = Server(uvicorn.Config(app, port=0, lifespan="on"), lifecycle=Lifecycle(), drain_delay_s=0)
server.run()
"""


def test_a_thread_that_nothing_can_interrupt_does_not_hold_up_the_end():
    subprocess.run([sys.executable, "-c", LEFT_BEHIND], check=True, capture_output=True, timeout=30)
