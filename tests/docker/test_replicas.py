"""Three real replicas behind the real nginx and HAProxy, with the configurations that are shipped."""

import gzip
from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest

from tests.support.balancers import BALANCERS, balanced
from tests.support.pictures import jpeg
from tests.support.processes import eventually
from tests.support.replicas import Replica, kill_at_work, restart_all
from tests.support.server import PATIENT, Server
from tests.support.traffic import steady

BODY_LIMIT = 32 * 2**20
RATE = 5.0  # requests a second: beside other tests, replicas that start answer no more


class Deployment(NamedTuple):
    program: str
    balancer: Server
    replicas: list[Replica]


@pytest.fixture(scope="module", params=BALANCERS)
def deployment(request, need, redis_url) -> Iterator[Deployment]:
    need(request.param)
    with balanced(BALANCERS[request.param], store=redis_url, **PATIENT) as (balancer, running):
        yield Deployment(request.param, balancer, running)


@pytest.fixture
def client(deployment: Deployment) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{deployment.balancer.port}", timeout=30) as client:
        yield client


def test_every_replica_draws_what_another_one_classified(client):
    paths = [client.post("/classify", content=jpeg()).json()["results"][0]["attention"] for _ in range(3)]
    assert [client.get(path).status_code for path in paths for _ in range(6)] == 18 * [200]


def test_a_body_of_the_limit_is_read_and_one_byte_more_is_not(client):
    assert client.post("/classify", content=bytes(BODY_LIMIT)).status_code == 415
    answer = client.post("/classify", content=bytes(BODY_LIMIT + 1))
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert (answer.status_code, answer.json()["type"]) == (413, "urn:vit-serve:problem:body-too-large")


def received(client: httpx.Client, path: str, encoding: str, **headers: str) -> tuple[httpx.Response, bytes]:
    """An answer, and its body as it came over the wire."""
    with client.stream("GET", path, headers={"Accept-Encoding": encoding, **headers}) as answer:
        return answer, b"".join(answer.iter_raw())


def varies(answer: httpx.Response) -> set[str]:
    return {name.strip().lower() for name in answer.headers.get_list("vary", split_commas=True)}


@pytest.fixture
def drawn(client) -> str:
    """The path of a map that can be fetched."""
    return client.post("/classify", content=jpeg()).json()["results"][0]["attention"]


def test_text_arrives_compressed_and_images_and_arrays_as_they_are(client, drawn):
    for path in (f"{drawn}?format=json", "/", "/openapi.json", "/page/main.js", "/page/style.css"):
        plain, as_it_is = received(client, path, "identity")
        packed, body = received(client, path, "gzip")
        assert (plain.headers.get("content-encoding"), packed.headers["content-encoding"]) == (None, "gzip")
        assert gzip.decompress(body) == as_it_is
        assert varies(plain) | {"accept-encoding"} <= varies(packed)
    for path in (drawn, f"{drawn}?format=npy"):
        answer, body = received(client, path, "gzip")
        assert "content-encoding" not in answer.headers
        assert body == received(client, path, "identity")[1]
        assert answer.headers["etag"].startswith('"')


@pytest.mark.parametrize(("first", "second"), [("gzip", "identity"), ("identity", "gzip")])
def test_a_cached_map_is_not_sent_again(client, drawn, first, second):
    had, _ = received(client, f"{drawn}?format=json", first)
    again, body = received(client, f"{drawn}?format=json", second, **{"If-None-Match": had.headers["etag"]})
    assert (again.status_code, body) == (304, b"")
    assert again.headers["etag"].removeprefix("W/") == had.headers["etag"].removeprefix("W/")


def test_a_rolling_restart_costs_no_request(deployment):
    with steady(deployment.balancer.port, jpeg(), RATE) as traffic:
        restart_all(deployment.replicas)
    assert traffic.failures == []
    assert len(traffic.seconds) > RATE
    if deployment.program == "haproxy":  # each was left as it drained, before it stopped listening
        for number in range(len(deployment.replicas)):
            left = f"replica{number} is DOWN, reason: Layer7 wrong status, code: 503"
            assert left in deployment.balancer.output()


def test_a_killed_replica_costs_no_request(deployment):
    victim = deployment.replicas[0]
    with steady(deployment.balancer.port, jpeg(), RATE) as traffic:
        kill_at_work(victim, traffic)
        victim.revive()
    assert traffic.failures == []
    assert max(traffic.seconds) >= 0.5


def test_without_replicas_the_answer_is_a_problem_until_one_is_back(client, deployment):
    for replica in deployment.replicas:
        replica.kill()
    answer = client.post("/classify", content=jpeg())
    deployment.replicas[0].revive()
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) > 0
    eventually(lambda: client.post("/classify", content=jpeg()).status_code == 200)
