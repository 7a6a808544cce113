"""The real server in a process of its own: start, load, stop, and refusals to start."""

import base64
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import numpy as np
import pytest

from app.bundle import sha256
from app.errors import CannotStart
from app.main import create_app
from app.settings import Settings
from tests.support.connection import JSON, Connection, file_part, form, post
from tests.support.edited import copied, edit
from tests.support.peak import peak_mib, reset_peak
from tests.support.server import running


def test_it_serves_many_clients_and_leaves_no_file_behind(tmp_path, monkeypatch, star):
    """In its home, ONNX Runtime would keep an identity of the machine, and reports of its use to send away."""
    monkeypatch.setenv("HOME", str(tmp_path))
    patient = {"max_queue_wait_s": 60, "request_timeout_s": 60}  # on a busy machine it would refuse some
    with running(**patient) as process:
        with httpx.Client(base_url=process.url, timeout=60) as client, ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda _: client.post("/classify", content=star).json(), range(64)))
            assert {answer["results"][0]["predictions"][0]["label"] for answer in answers} == {"star"}
            assert client.get(answers[0]["results"][0]["attention"]).headers["content-type"] == "image/png"
            assert "server" not in client.get("/livez").headers
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert "Traceback" not in process.output()
    assert list(tmp_path.iterdir()) == []


def in_json(image: bytes) -> bytes:
    return post(b'{"inputs":"%s"}' % base64.b64encode(image), JSON)


def test_bodies_in_work_take_their_memory_once(in_onnx_runtime):
    """The service counts bytes of bodies, so what they take is what it bounds."""
    bodies, image = 8, b"\xff\xd8\xff" + bytes(12 * 2**20)
    with running(decode_workers=2, max_queue_wait_s=60, request_timeout_s=60) as server:
        for request in 2 * [post(image), form(file_part(image)), in_json(image)]:  # the heap's habits change
            reset_peak(server.pid)
            before = peak_mib(server.pid)
            with ExitStack() as opened:
                clients = [opened.enter_context(Connection(server.port)) for _ in range(bodies)]
                for part in (request[:-1000], request[-1000:]):
                    for client in clients:
                        client.send(part)
                assert {client.answer().status for client in clients} == {422}
            assert peak_mib(server.pid) - before < 1.2 * bodies * len(request) / 2**20


def test_a_damaged_weight_with_a_valid_checksum_stops_the_start(tmp_path, in_onnx_runtime):
    """The highest bit of the exponent of one number, as a disk or memory at fault would leave it at export."""
    bundle = copied(tmp_path / "bundle")
    weights = np.fromfile(bundle / "weights.bin", np.uint32)
    at = np.flatnonzero(np.abs(weights.view(np.float32) - 0.03) < 0.01)[1000]
    weights[at] ^= 1 << 30
    weights.tofile(bundle / "weights.bin")
    edit(bundle, files={"weights.bin": sha256(bundle / "weights.bin")})
    with pytest.raises(CannotStart, match=r"^The model computes wrong numbers on CPUExecutionProvider: for the bundle"):
        create_app(Settings(bundle=bundle))


def test_collecting_garbage_does_not_walk_through_the_whole_service(in_onnx_runtime):
    """That takes 50 to 110 ms, in which the event loop answers no request."""
    program = "import gc, app.server as s; s.load(); print(gc.get_freeze_count(), len(gc.get_objects()))"
    command, any_port = [sys.executable, "-c", program], {**os.environ, "VIT_PORT": "0"}
    out = subprocess.run(command, env=any_port, capture_output=True, text=True, timeout=60, check=True).stdout
    for_good, walked = map(int, out.split())
    assert for_good > 50_000 > 1_000 > walked
