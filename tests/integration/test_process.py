"""The real server in a process of its own: start, load, stop, and refusals to start."""

import json
import shutil
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from hashlib import sha256

import httpx
import numpy as np
import pytest

from tests.benchmarks.peak import peak_mib
from tests.load.connection import Connection, file_part, form, post
from tests.load.server import reset_peak
from tests.support.processes import Process, served


@pytest.fixture
def server():
    with served(drain_delay_s="0") as (process, base):
        yield process, base


def test_it_serves_many_clients_at_once_and_stops_when_told(server, star):
    process, base = server
    with httpx.Client(base_url=base, timeout=60) as client, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: client.post("/classify", content=star).json(), range(64)))
        assert {answer["results"][0]["predictions"][0]["label"] for answer in answers} == {"star"}
        assert client.get(answers[0]["results"][0]["attention"]).headers["content-type"] == "image/png"
        assert "server" not in client.get("/livez").headers
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert "Traceback" not in process.output()


@pytest.mark.parametrize("request_of", [post, lambda image: form(file_part(image))], ids=["raw", "form"])
def test_bodies_in_work_take_their_memory_once(server, request_of):
    """VIT_MAX_INTAKE_BYTES counts bytes of bodies, so what they take is what it bounds."""
    process, base = server
    bodies, mebibytes = 8, 16
    request = request_of(b"\xff\xd8\xff" + bytes(mebibytes * 2**20))

    def peak() -> float:
        reset_peak(process.pid)
        before = peak_mib(process.pid)
        with ExitStack() as opened:
            clients = [opened.enter_context(Connection(int(base.rsplit(":", 1)[1]))) for _ in range(bodies)]
            for client in clients:
                client.send(request[:-1000])
            for client in clients:
                client.send(request[-1000:])
            assert {client.answer().status for client in clients} == {422}
        return peak_mib(process.pid) - before

    peak()  # the heap's own habits change with what is freed
    assert peak() < 1.2 * bodies * mebibytes


@pytest.mark.parametrize("declared", [True, False])
def test_a_client_that_sends_far_too_much_still_gets_its_answer(server, declared):
    _, base = server
    size = 100_000_000
    body = bytes(size) if declared else (bytes(1_000_000) for _ in range(size // 1_000_000))
    response = httpx.post(f"{base}/classify", content=body, timeout=60)
    assert response.status_code == 413
    assert response.json()["type"] == "urn:vit-serve:problem:body-too-large"
    assert httpx.get(f"{base}/readyz").status_code == 200


def test_a_declared_length_over_the_limit_is_refused_unread(server):
    """The client waits for `100 Continue` and gets 413 instead."""
    _, base = server
    with socket.create_connection(("127.0.0.1", int(base.rsplit(":", 1)[1])), timeout=10) as connection:
        connection.sendall(
            b"POST /classify HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\nExpect: 100-continue\r\n\r\n"
        )
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_it_leaves_nothing_behind_in_the_home_of_its_user(tmp_path, monkeypatch, star):
    """ONNX Runtime would keep an identity of the machine there, and reports of its use to send away."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with served(drain_delay_s="0") as (_, base):
        httpx.post(f"{base}/classify", content=star, timeout=60).raise_for_status()
    assert list(tmp_path.iterdir()) == []


def refusal(**variables: str) -> tuple[int, str]:
    with Process(**{"port": "0", **variables}) as process:
        return process.wait(120), process.output()


def test_a_damaged_bundle_keeps_it_from_starting(tmp_path):
    bundle = shutil.copytree("app/demo", tmp_path / "bundle")
    with (bundle / "weights.bin").open("r+b") as file:
        file.seek(1000)
        file.write(b"\x01\x02\x03")
    code, out = refusal(bundle=str(bundle))
    assert code == 3
    assert "weights.bin does not have the checksum" in out
    assert "Traceback" not in out


def test_a_weight_that_no_checksum_finds_damaged_keeps_it_from_starting(tmp_path):
    """The highest bit of the exponent of one number, as a disk or memory at fault would leave it at export."""
    bundle = shutil.copytree("app/demo", tmp_path / "bundle")
    weights = np.fromfile(bundle / "weights.bin", np.uint32)
    at = np.flatnonzero(np.abs(weights.view(np.float32) - 0.03) < 0.01)[1000]
    weights[at] ^= 1 << 30
    weights.tofile(bundle / "weights.bin")
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["files"]["weights.bin"] = sha256((bundle / "weights.bin").read_bytes()).hexdigest()
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    code, out = refusal(bundle=str(bundle))
    assert code == 3
    assert "cannot start: The model computes wrong numbers on CPUExecutionProvider: for the bundle's known" in out
    assert "Traceback" not in out


def test_an_older_bundle_is_refused_with_what_to_do(tmp_path):
    bundle = shutil.copytree("app/demo", tmp_path / "bundle")
    manifest = json.loads((bundle / "manifest.json").read_text())
    del manifest["known_answer"]
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    code, out = refusal(bundle=str(bundle))
    assert code == 3
    assert "has no known answer: an older version made it. Export it again." in out


@pytest.mark.parametrize(
    ("mebibytes", "said"),
    [
        (4096, "INFO app.inference.memory: memory: the model needs about"),
        (512, "WARNING app.inference.memory: memory: the model needs about"),
    ],
)
def test_it_says_whether_batches_fit_the_memory(tmp_path, mebibytes, said):
    """Of 512 MiB, kept maps and images being decoded may take 512 less 37."""
    (tmp_path / "memory.max").write_text(f"{mebibytes * 2**20}\n")
    with served(module="tests.support.small_machine", test_cgroup=str(tmp_path), drain_delay_s="0") as (process, base):
        best = httpx.get(f"{base}/model").json()["best_batch"]
        assert said in process.output()
    assert mebibytes > 512 or best == {"classify": 1, "explain": 1}


def test_cuda_that_does_not_work_keeps_it_from_starting():
    code, out = refusal(device="cuda")
    assert code == 3
    assert "cannot start: ONNX Runtime cannot use CUDA here" in out


def test_collecting_garbage_does_not_walk_through_the_whole_service():
    """That takes 50 to 110 ms, in which the event loop answers no request."""
    program = """
import gc
from app import server
server.load()
print(gc.get_freeze_count(), len(gc.get_objects()))
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True).stdout
    for_good, walked = map(int, out.split())
    assert for_good > 50_000 > 1_000 > walked


def test_settings_that_make_no_sense_are_named():
    code, out = refusal(max_batch="-1")
    assert code == 2
    assert out == "cannot start: VIT_MAX_BATCH: Input should be greater than or equal to 0\n"


@pytest.mark.parametrize("taken", ["port", "metrics_port"])
def test_a_port_in_use_keeps_it_from_starting(taken):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code, out = refusal(**{taken: str(port), "log_level": "warning"})
    assert (code, out) == (3, f"cannot start: port {port} of 127.0.0.1 is in use\n")


@pytest.mark.parametrize("host", ["203.0.113.1", "2001:db8::1"])  # reserved for documentation
def test_an_address_of_another_machine_keeps_it_from_starting(host):
    code, out = refusal(host=host, log_level="error")
    assert code == 3
    assert out.startswith(f"cannot start: port 0 of {host} cannot be used: ")
    assert out.count("\n") == 1
