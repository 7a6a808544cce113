"""The real server in a process of its own: how it ends, by signals and by failing."""

import errno
import re
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest
from PIL import Image

from tests.benchmarks.server import is_ready
from tests.load.connection import Connection, message
from tests.support.processes import HOST, Process, eventually, served

SLOW = "tests.support.faulty_server"  # two seconds for each run
DECODED = 'vit_stage_seconds_count{stage="decode"}'


def port(base: str) -> int:
    return int(base.rpartition(":")[2])


def refused(base: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port(base))) == errno.ECONNREFUSED


def metric(base: str, name: str) -> float:
    with Connection(port(base)) as connection:
        connection.send(message("GET /metrics"))
        text = connection.answer().body.decode()
    (value,) = re.findall(rf"^{re.escape(name)} (.+)$", text, re.MULTILINE)
    return float(value)


def test_after_sigterm_it_is_not_ready_before_it_refuses_connections(star):
    with served(drain_delay_s="3") as (process, base), httpx.Client(base_url=base) as client:
        assert "connection" not in client.get("/livez").headers
        process.send_signal(signal.SIGTERM)
        eventually(lambda: not is_ready(port(base)))
        eventually(lambda: client.get("/livez").headers.get("connection") == "close")
        answer = client.post("/classify", content=star)
        assert answer.status_code == 200
        assert answer.headers["connection"] == "close"
        assert httpx.get(f"{base}/readyz").json()["type"] == "urn:vit-serve:problem:unavailable"
        eventually(lambda: refused(base))
        assert process.wait(60) == 0
        assert "Traceback" not in process.output()


def test_requests_in_work_are_finished(star):
    with served(module=SLOW, drain_delay_s="0") as (process, base), ThreadPoolExecutor(1) as pool:
        asked = pool.submit(httpx.post, f"{base}/classify", content=star, timeout=20)
        eventually(lambda: metric(base, "vit_queue_images") == 1)
        process.send_signal(signal.SIGTERM)
        assert asked.result().status_code == 200
        assert process.wait(60) == 0


def test_a_verification_does_not_delay_the_end(star):
    """It would take a minute."""
    with served(module=SLOW, drain_delay_s="0") as (process, base), ThreadPoolExecutor(1) as pool:
        map_of_it = httpx.post(f"{base}/classify", content=star, timeout=20).json()["results"][0]["attention"]
        asked = pool.submit(httpx.post, f"{base}{map_of_it}/verify", timeout=20)
        eventually(lambda: metric(base, "vit_requests_in_flight") == 2)  # and the one that asks
        process.send_signal(signal.SIGTERM)
        assert asked.result().status_code == 503
        assert process.wait(30) == 0


def test_unfinished_upload_gets_503_when_draining():
    with served(drain_delay_s="0", drain_timeout_s="1", receive_timeout_s="60") as (process, base):
        with Connection(port(base)) as connection:
            connection.send(message("POST /classify", "Content-Length: 100", "Expect: 100-continue"))
            assert connection.answer().status == 100  # its body is awaited
            process.send_signal(signal.SIGTERM)
            answer = connection.answer()
        assert (answer.status, answer.headers["connection"]) == (503, "close")
        assert answer.json()["type"] == "urn:vit-serve:problem:unavailable"
        assert process.wait(30) == 0
        assert "Traceback" not in process.output()


def test_sigint_skips_the_drain_delay(star):
    with served(drain_delay_s="60") as (process, base):
        assert httpx.post(f"{base}/classify", content=star).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert "Traceback" not in process.output()


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(second):
    with served(drain_delay_s="60") as (process, base):
        process.send_signal(signal.SIGTERM)
        eventually(lambda: not is_ready(port(base)))
        process.send_signal(second)
        assert process.wait(60) == 128 + second


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_it_starts_ends_it(number):
    with Process(module="tests.support.stalled_start", port="0") as process:
        eventually(lambda: process.output() == "loading\n")
        process.send_signal(number)
        assert process.wait(60) == 0
        assert process.output() == "loading\n"


def test_a_broken_engine_ends_the_process_after_all_answers(star, encode):
    black = encode(Image.new("RGB", (64, 64)))
    with served(module=SLOW, max_queue_wait_s="60") as (process, base), ThreadPoolExecutor(8) as pool:

        def post(body: bytes) -> httpx.Response:
            return httpx.post(f"{base}/classify", content=body, timeout=20)

        first = pool.submit(post, star)
        eventually(lambda: metric(base, DECODED) == 1)
        last = pool.submit(post, black)
        eventually(lambda: metric(base, DECODED) == 2)
        rest = [pool.submit(post, star) for _ in range(4)]
        assert first.result().status_code == 200
        for answer in (last.result(), *(one.result() for one in rest)):
            assert answer.status_code == 503
            assert answer.json()["type"] == "urn:vit-serve:problem:unavailable"
        with suppress(httpx.TransportError):  # gone already
            assert httpx.get(f"{base}/readyz").status_code == 503
            assert httpx.get(f"{base}/livez").status_code == 503
            assert post(star).status_code == 503
        assert process.wait(60) == 70
        assert "illegal memory access" in process.output()
