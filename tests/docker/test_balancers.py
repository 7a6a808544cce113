"""Balancers and the service agree on every limit, although the numbers are in several files."""

import json
import re
import subprocess
from pathlib import Path

import httpx
import pytest

from app.server import MAX_CONNECTIONS
from app.settings import Settings
from tests.support.balancers import BALANCERS, nginx_file
from tests.support.connection import Connection, message
from tests.support.listener import keeping_posts
from tests.support.processes import PATIENCE_S
from tests.support.server import running

NGINX = Path("docker/nginx.conf").read_text()
HAPROXY = Path("docker/haproxy.cfg").read_text()
SECONDS = {"s": 1, "m": 60}


def directive(name: str, text: str = NGINX) -> str:
    """What follows `name` where it is set, once."""
    (value,) = re.findall(rf"^ *{name} ([^;#\n]+?);? *(?:#.*)?$", text, re.MULTILINE)
    return value


def seconds(value: str) -> float:
    return float(value[:-1]) * SECONDS[value[-1]]


def test_a_body_has_the_same_bytes_and_the_same_time_to_arrive():
    most, receive_s = Settings().max_upload_bytes, Settings().receive_timeout_s
    assert int(directive("client_max_body_size")) == most
    assert re.findall(r"content-length\) gt (\d+)", HAPROXY) == [str(most)]
    assert seconds(directive("client_body_timeout")) == receive_s
    assert seconds(directive("timeout client", HAPROXY)) == receive_s
    assert seconds(directive("timeout http-request", HAPROXY)) == receive_s


def test_a_balancer_waits_longer_than_a_request_takes():
    limit = Settings().request_timeout_s
    for timeout in (directive("proxy_read_timeout"), directive("timeout server", HAPROXY)):
        assert limit < seconds(timeout) < 2 * limit


def test_connections_are_fewer_than_a_replica_takes_and_idle_ones_are_closed_by_the_balancer():
    (upstream,) = re.findall(r"upstream replicas \{.*?\}", NGINX, re.DOTALL)
    assert seconds(directive("keepalive_timeout", upstream)) < Settings().keep_alive_s
    assert int(directive("maxconn", HAPROXY)) < MAX_CONNECTIONS
    assert int(directive("limit_conn clients")) == Settings().max_images_in_progress


def test_haproxy_notices_a_draining_replica_before_it_stops_listening():
    interval, fall = re.findall(r"check inter (\d+)s fall (\d+)", HAPROXY)[0]
    assert int(interval) * (int(fall) + 1) < Settings().drain_delay_s


def test_the_problems_of_balancers_are_json():
    problems = [json.loads(text) for text in re.findall(r"'(\{\"type\".*?\})'", NGINX + HAPROXY)]
    assert {(problem["type"].split(":")[-1], problem["status"]) for problem in problems} == {
        ("body-too-large", 413),
        *(("unavailable", status) for status in (502, 503, 504)),
    }


@pytest.mark.parametrize(
    ("name", "path", "size", "times"),
    [
        ("haproxy", "/classify", 2**20 - 2**14, 2),
        ("haproxy", "/classify", 2**20 + 1, 1),
        ("nginx", "/classify", 999_999, 2),
        ("nginx", "/classify", 1_000_000, 1),
        *(
            (name, f"/attention/x/{call}", 1, 1)
            for name in BALANCERS
            for call in ("verify", "v%65rify?steps=4", "cover")
        ),
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


def check(*command: str | Path) -> None:
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, "warn" in result.stderr.lower()) == (0, False), result.stderr


def test_the_configuration_of_nginx_is_valid(need, tmp_path):
    check(need("nginx"), "-t", "-e", "stderr", "-p", tmp_path, "-c", nginx_file([1], tmp_path, 2))


def test_the_configuration_of_haproxy_is_valid_as_its_head_makes_it_for_three_replicas(need, tmp_path):
    head = re.sub("^#", "", HAPROXY, flags=re.MULTILINE)
    (command,) = re.findall(r"^ +(sed .*?> /tmp/haproxy.cfg)", head, re.MULTILINE | re.DOTALL)
    subprocess.run(["sh", "-c", command.replace("/tmp/", f"{tmp_path}/")], check=True)
    made = tmp_path / "haproxy.cfg"
    assert re.findall(r"^ *server \w+ 127.0.0.1:(\d+)$", made.read_text(), re.MULTILINE) == ["8001", "8002", "8003"]
    check(need("haproxy"), "-c", "-f", made)
