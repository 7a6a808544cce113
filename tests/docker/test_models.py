"""Several models behind one address: real replicas of two are behind each balancer."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.support.balancers import BALANCERS, in_front_of_models, listening, nginx_file_of_list
from tests.support.edited import demo_named
from tests.support.replicas import Replica, replicas
from tests.support.server import PATIENT, free_port

NAMES = {path.name for path in Path("docker/models/upstreams").iterdir()}
JSON = {"Accept": "application/json"}


class Models(NamedTuple):
    program: str
    port: int
    birds: list[Replica]


@pytest.fixture(scope="module", params=BALANCERS)
def models(request, need, redis_url, tmp_path_factory) -> Iterator[Models]:
    """Two replicas of birds, and one of shapes, which is the demo."""
    need(request.param)
    folder = tmp_path_factory.mktemp("models")
    settings = {"store": redis_url, **PATIENT}
    with (
        replicas(2, bundle=demo_named("birds", folder), root_path="/birds", **settings) as birds,
        replicas(1, root_path="/shapes", **settings) as shapes,
        in_front_of_models(
            request.param,
            {"birds": [one.port for one in birds], "shapes": [one.port for one in shapes]},
            folder,
        ) as balancer,
    ):
        yield Models(request.param, balancer.port, birds)


@pytest.fixture
def client(models) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{models.port}", timeout=30, follow_redirects=True) as client:
        yield client


def test_the_address_lists_the_models_for_a_person_and_for_a_program(models, client):
    page = client.get("/", headers={"Accept": "text/html" if models.program == "nginx" else "text/plain"})
    if models.program == "haproxy":
        assert page.text.split() == sorted(NAMES)
        assert "/page/list.js" in client.get("/", headers={"Accept": "text/html"}).text
        return
    assert "/page/list.js" in page.text
    assert re.findall(r'<a href="([^"]+)">\1</a>', page.text) == sorted(NAMES)
    found = client.get("/", headers=JSON)
    assert found.headers["content-type"] == "application/json"
    assert [model["name"] for model in found.json()] == sorted(NAMES)
    for hidden in ("/list.html/", "/list.json/"):
        assert client.get(hidden).status_code == 404


def test_each_model_answers_below_its_path(client, star):
    for name in NAMES:
        answer = client.post(f"/{name}/classify", content=star).json()
        assert answer["model"]["name"] == name
        link = answer["results"][0]["attention"]
        assert link.startswith(f"/{name}/")
        assert client.get(link).headers["content-type"] == "image/png"
        assert str(client.get(f"/{name}").url).endswith(f"/{name}/")


@pytest.mark.parametrize(
    "path", ["/bird", "/birds2/model", "/model", "/redis/", "/names", "/birds.conf", "/upstreams/birds", "/-"]
)
def test_a_path_of_no_model_is_a_problem_that_says_where_the_list_is(client, path):
    answer = client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert "GET / lists the models" in answer.json()["detail"]


def test_probes_and_metrics_stay_inside(client):
    for path in ("livez", "readyz", "metrics", "%6detrics"):
        assert client.get(f"/birds/{path}").status_code == client.get(f"/{path}").status_code == 404


@pytest.mark.parametrize("program", BALANCERS)
def test_a_model_without_replicas_is_a_problem_and_the_list_still_answers(need, tmp_path, program):
    need(program)
    with in_front_of_models(program, {name: [free_port()] for name in NAMES}, tmp_path) as balancer:
        answer = httpx.get(f"http://127.0.0.1:{balancer.port}/birds/model", timeout=20)
        listed = httpx.get(f"http://127.0.0.1:{balancer.port}/")
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:vit-serve:problem:unavailable")
    assert listed.status_code == 200


def test_nginx_lists_the_models_in_kubernetes_too(need, tmp_path):
    need("nginx")
    with listening("nginx", nginx_file_of_list(["birds"], tmp_path, port := free_port()), port) as server:
        assert '<a href="birds">' in httpx.get(server.url).text
        assert [model["name"] for model in httpx.get(server.url, headers=JSON).json()] == ["birds"]
