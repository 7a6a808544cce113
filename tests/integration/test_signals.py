"""The real server in a process of its own: how it ends, by signals and by failing."""

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest
from PIL import Image

from tests.integration.conftest import metric
from tests.support.connection import Connection, message
from tests.support.faulty_server import RUN_ENDS
from tests.support.processes import PATIENCE_S, eventually
from tests.support.server import Process, is_ready, running

pytestmark = pytest.mark.usefixtures("in_onnx_runtime")
SLOW = "tests.support.faulty_server"  # two seconds for each run
DECODED = 'vit_stage_seconds_count{stage="decode"}'


def ended(server: Process) -> bool:
    """Without a complaint."""
    return server.wait(60) == 0 and "Traceback" not in server.output()


def test_after_sigterm_it_answers_and_is_not_ready_until_a_sigint_ends_it_at_once(star):
    with running(drain_delay_s=60) as server, httpx.Client(base_url=server.url, timeout=PATIENCE_S) as client:
        assert "connection" not in client.get("/livez").headers
        server.send_signal(signal.SIGTERM)
        eventually(lambda: not is_ready(server.port))
        server.send_signal(signal.SIGTERM)  # a second one changes nothing
        eventually(lambda: client.get("/livez").headers.get("connection") == "close")
        assert [client.head(path).status_code for path in ("/livez", "/readyz")] == [200, 503]
        answer = client.post("/classify", content=star)
        assert (answer.status_code, answer.headers["connection"]) == (200, "close")
        answer = httpx.get(f"{server.url}/readyz", timeout=PATIENCE_S)
        assert answer.json()["type"] == "urn:vit-serve:problem:unavailable"
        assert int(answer.headers["retry-after"]) >= 1
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 128 + signal.SIGINT


@pytest.mark.parametrize(
    ("number", "settings", "status"),
    [(signal.SIGTERM, {}, 200), (signal.SIGINT, {"drain_delay_s": 600, "drain_timeout_s": 0}, 503)],
)
def test_a_request_in_work_is_finished_unless_the_time_to_drain_is_over(star, number, settings, status):
    """SIGINT, as of a person at a terminal, skips the delay before it."""
    with running(module=SLOW, **settings) as server, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(httpx.post, f"{server.url}/classify", content=star, timeout=PATIENCE_S)
        eventually(lambda: metric(server.port, DECODED) == 1)
        server.send_signal(number)
        assert asked.result().status_code == status
        assert (RUN_ENDS in server.output()) == (status == 200)
        assert ended(server)


def test_an_unfinished_upload_gets_503_once_the_delay_and_the_time_to_drain_are_over():
    with running(drain_delay_s=0.5, drain_timeout_s=1, receive_timeout_s=60) as server:
        with Connection(server.port) as connection:
            connection.send(message("POST /classify", "Content-Length: 100", "Expect: 100-continue"))
            assert connection.answer().status == 100  # its body is awaited
            server.send_signal(signal.SIGTERM)
            answer = connection.answer()
        assert (answer.status, answer.headers["connection"]) == (503, "close")
        assert answer.json()["type"] == "urn:vit-serve:problem:unavailable"
        assert ended(server)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_it_starts_ends_it(number):
    with Process(module="tests.support.stalled_start") as server:
        eventually(lambda: server.output() == "loading\n")
        server.send_signal(number)
        assert server.wait(60) == 0
        assert server.output() == "loading\n"


def test_a_broken_engine_ends_the_process_after_all_answers(star, encode, tmp_path):
    black, all_wait = encode(Image.new("RGB", (64, 64))), tmp_path / "all wait"
    settings = {"max_queue_wait_s": 60, "request_timeout_s": 60, "BREAKS_ONCE_THERE_IS": all_wait}
    with running(module=SLOW, **settings) as server, ThreadPoolExecutor(8) as pool:

        def post(body: bytes) -> httpx.Response:
            return httpx.post(f"{server.url}/classify", content=body, timeout=PATIENCE_S)

        first = pool.submit(post, star)
        eventually(lambda: metric(server.port, DECODED) == 1)
        last = pool.submit(post, black)
        eventually(lambda: metric(server.port, DECODED) == 2)
        rest = [pool.submit(post, star) for _ in range(4)]
        eventually(lambda: metric(server.port, DECODED) == 6)
        all_wait.touch()
        assert first.result().status_code == 200
        for answer in (last.result(), *(one.result() for one in rest)):
            assert (answer.status_code, answer.json()["type"]) == (503, "urn:vit-serve:problem:unavailable")
        with suppress(httpx.TransportError):  # gone already
            assert httpx.get(f"{server.url}/readyz", timeout=PATIENCE_S).status_code == 503
            assert httpx.get(f"{server.url}/livez", timeout=PATIENCE_S).status_code == 503
            assert post(star).status_code == 503
        assert server.wait(60) == 70
        assert "illegal memory access" in server.output()
