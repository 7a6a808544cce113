"""nginx and HAProxy agree with the service on every limit, and repeat what died with a replica and nothing else."""

import re
import subprocess
from pathlib import Path

import httpx
import pytest

from app.server import MAX_CONNECTIONS
from app.settings import Settings
from tests.support.balancers import BALANCERS
from tests.support.connection import Connection, message
from tests.support.listener import keeping_posts
from tests.support.processes import PATIENCE_S
from tests.support.server import running

SECONDS = {"s": 1, "m": 60}


@pytest.mark.parametrize("folder", ["docker", "docker/models"])
def test_limits_are_those_of_the_service(folder):
    service = Settings()
    nginx, haproxy = (Path(folder, name).read_text() for name in ("nginx.conf", "haproxy.cfg"))

    def directive(name: str, text: str) -> str:
        (value,) = re.findall(rf"^ *{name} ([^;#\n]+?);? *(?:#.*)?$", text, re.MULTILINE)
        return value

    def seconds(name: str, text: str) -> float:
        value = directive(name, text)
        return float(value[:-1]) * SECONDS[value[-1]]

    assert int(directive("client_max_body_size", nginx)) == service.max_upload_bytes
    assert {*re.findall(r"content-length\) gt (\d+)", haproxy)} == {str(service.max_upload_bytes)}
    assert int(directive("limit_conn clients", nginx)) == service.max_images_in_progress
    assert int(directive("maxconn", haproxy)) < MAX_CONNECTIONS
    for name, text in (("client_body_timeout", nginx), ("timeout client", haproxy), ("timeout http-request", haproxy)):
        assert seconds(name, text) == service.receive_timeout_s
    for name, text in (("proxy_read_timeout", nginx), ("timeout server", haproxy)):
        assert service.request_timeout_s < seconds(name, text) < 2 * service.request_timeout_s
    for interval, fall in re.findall(r"check inter (\d+)s fall (\d+)", haproxy):
        assert int(interval) * (int(fall) + 1) < service.drain_delay_s  # it is left before it stops listening


@pytest.mark.parametrize("file", ["nginx.conf", *(f"models/upstreams/{name}" for name in ("birds", "shapes"))])
def test_nginx_closes_idle_connections_before_a_replica_does(file):
    upstream = Path("docker", file).read_text().partition("upstream ")[2]
    assert int(re.findall(r"keepalive_timeout (\d+)s;", upstream)[0]) < Settings().keep_alive_s


@pytest.mark.parametrize(
    ("name", "path", "size", "times"),
    [
        ("haproxy", "/classify", 2**20 - 2**14, 2),
        ("haproxy", "/classify", 2**20 + 1, 1),
        ("nginx", "/classify", 999_999, 2),
        ("nginx", "/classify", 1_000_000, 1),
        *((name, f"/attention/x/{call}", 1, 1) for name in BALANCERS for call in ("v%65rify?steps=4", "cover")),
    ],
)
def test_a_request_that_died_with_its_replica_is_repeated_if_the_balancer_has_it(
    need, tmp_path, name, path, size, times
):
    """docs/deployment.md says up to which size. What covers patches is never repeated."""
    need(name)
    with (
        keeping_posts(answers=False) as (first, one),
        keeping_posts(answers=False) as (second, other),
        BALANCERS[name]([first, second], tmp_path) as balancer,
    ):
        answer = httpx.post(f"http://127.0.0.1:{balancer.port}{path}", content=bytes(size), timeout=PATIENCE_S)
    assert answer.status_code in (502, 503)
    assert len(one + other) == times


@pytest.mark.parametrize("length", ["Content-Length: 30000000", "Transfer-Encoding: chunked"])
def test_nginx_keeps_no_large_body_before_a_replica_has_seen_the_key(need, tmp_path, length):
    need("nginx")
    with (
        running(api_keys="key", log_level="error") as replica,
        BALANCERS["nginx"]([replica.port], tmp_path) as balancer,
        Connection(balancer.port) as client,
    ):
        client.send(message("POST /classify", length))
        assert client.answer().status == 401


def test_the_head_of_haproxys_file_makes_a_valid_one_for_three_replicas(need, tmp_path):
    head = re.sub("^#", "", Path("docker/haproxy.cfg").read_text(), flags=re.MULTILINE)
    (command,) = re.findall(r"^ +(sed .*?> /tmp/haproxy.cfg)", head, re.MULTILINE | re.DOTALL)
    subprocess.run(["sh", "-c", command.replace("/tmp/", f"{tmp_path}/")], check=True)
    made = tmp_path / "haproxy.cfg"
    assert re.findall(r"^ *server \w+ 127.0.0.1:(\d+)$", made.read_text(), re.MULTILINE) == ["8001", "8002", "8003"]
    checked = subprocess.run([need("haproxy"), "-c", "-f", made], capture_output=True, text=True)
    assert (checked.returncode, "warn" in checked.stderr.lower()) == (0, False), checked.stderr
