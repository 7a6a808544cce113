"""Several models behind one address: files that name them agree, and real replicas of two are behind each balancer."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import yaml

from app.settings import Settings
from tests.support.balancers import BALANCERS, in_front_of_models, listening, nginx_file_of_list
from tests.support.edited import demo_named
from tests.support.pictures import jpeg
from tests.support.replicas import Replica, replicas, restart_all
from tests.support.server import PATIENT, free_port
from tests.support.traffic import steady
from vit_serve_client.command import main

FOLDER = Path("docker/models")
NAMES = {path.name for path in (FOLDER / "upstreams").iterdir()}
SERVICES = yaml.safe_load(Path("docker/models.yaml").read_text())["services"]
ONE = yaml.safe_load(Path("docker/compose.yaml").read_text())
HAPROXY = (FOLDER / "haproxy.cfg").read_text()
OF_ONE = {  # lines that only the balancers of one model have
    "nginx.conf": r"\s*(upstream replicas|zone |least_conn|server replica|keepalive 64|keepalive_timeout 60s; # shorter"
    r"|proxy_pass http://replicas)",
    "haproxy.cfg": r"\s*(defaults|frontend public|default_backend|backend replicas|filter compression|server-template)",
}
JSON = {"Accept": "application/json"}
RATE = 2.0  # requests a second to each: beside other tests, replicas that start answer no more


def extended(name: str) -> dict[str, Any]:
    """The service of compose.yaml that this one is made of."""
    assert SERVICES[name]["extends"]["file"] == "compose.yaml"
    found: dict[str, Any] = ONE["services"][SERVICES[name]["extends"]["service"]]
    return found


def test_a_model_has_the_same_name_everywhere():
    assert {name for name in SERVICES if "extends" in SERVICES[name] and "build" in extended(name)} == NAMES
    assert {*SERVICES["balancer"]["depends_on"]} == NAMES
    assert (FOLDER / "names").read_text().split() == sorted(NAMES)
    assert {*re.findall(r"^backend (\S+)", HAPROXY, re.MULTILINE)} == NAMES
    (scrape,) = yaml.safe_load(Path("docker/monitoring/models.yaml").read_text())["scrape_configs"]
    assert {*scrape["dns_sd_configs"][0]["names"]} == NAMES
    for name in NAMES:
        assert SERVICES[name]["environment"] == {"VIT_ROOT_PATH": f"/{name}"}
        assert f"upstream {name} {{" in (FOLDER / "upstreams" / name).read_text()
    assert len({SERVICES[name]["image"] for name in NAMES}) == len(NAMES)
    assert len({SERVICES[name]["build"]["args"]["BUNDLE"] for name in NAMES}) == len(NAMES)


def test_balancers_reach_the_port_of_a_replica():
    for name in NAMES:
        assert f"server {name}:{Settings().port} " in (FOLDER / "upstreams" / name).read_text()
        assert f" {name}:{Settings().port} " in HAPROXY


def test_compose_has_for_several_models_what_it_has_for_one():
    for name, service in SERVICES.items():
        if name != "balancer":
            assert "ports" not in service
            assert extended(name).get("depends_on", {}).keys() <= {"redis"}  # of services that are not extended
    one, several = ONE["services"]["balancer"], SERVICES["balancer"]
    different = {"volumes", "depends_on"}
    assert {key: one[key] for key in one.keys() - different} == {
        key: several[key] for key in several.keys() - different
    }
    mounts = [mount.split(":") for service in SERVICES.values() for mount in service.get("volumes", [])]
    assert all(Path("docker", source).exists() and mode == "ro" for source, _, mode in mounts)


def test_a_command_that_names_profiles_names_that_of_the_models():
    """They have it from what they extend, and one --profile takes the place of what docker/.env names."""
    for file in ("docker/models.yaml", "docs/deployment.md"):
        commands = re.findall(r"docker compose -f docker/models\.yaml .*", Path(file).read_text())
        named = [set(re.findall(r"--profile (\S+)", command)) for command in commands]
        assert any(named)
        for name in NAMES:
            assert [profiles for profiles in named if profiles and not profiles & {*extended(name)["profiles"]}] == []


@pytest.mark.parametrize("name", OF_ONE)
def test_balancers_of_several_models_have_every_line_of_those_of_one(name):
    lines = {line.strip() for line in (FOLDER / name).read_text().splitlines()}
    of_one = [line for line in Path("docker", name).read_text().splitlines() if not line.lstrip().startswith("#")]
    missing = [line for line in of_one if line.strip() not in lines]
    assert [line for line in missing if not re.match(OF_ONE[name], line)] == []


def test_an_upstream_is_that_of_one_model():
    (one,) = re.findall(r"upstream replicas (\{.*?\})", Path("docker/nginx.conf").read_text(), re.DOTALL)
    for name in NAMES:
        upstream = (FOLDER / "upstreams" / name).read_text().replace(f"server {name}:", "server replica:")
        assert upstream.replace(name, "replicas").split() == ["upstream", "replicas", *one.split()]


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
    page = client.get("/")
    if models.program == "haproxy":
        assert page.text.split() == sorted(NAMES)
        return
    assert re.findall(r'<a href="([^"]+)">\1</a>', page.text) == sorted(NAMES)
    assert "list" not in page.text
    assert page.text.startswith("<!doctype html>")
    assert "pre{font-size:0}" in page.text  # dates and sizes of the files, which say nothing of the models
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
        assert client.post(f"{link}/cover", params={"patches": "1"}).json()["patches"] == [1]


def test_the_page_of_each_model_finds_its_files(client):
    for name in NAMES:
        page = client.get(f"/{name}")  # as the list links to it
        assert str(page.url).endswith(f"/{name}/")
        links = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
        assert {client.get(str(page.url.join(link))).status_code for link in links} == {200}


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


def test_the_client_takes_the_address_of_a_model(models, star, tmp_path):
    (tmp_path / "star.jpg").write_bytes(star)
    for name in NAMES:
        out, maps = tmp_path / f"{name}.csv", tmp_path / name
        address = f"http://127.0.0.1:{models.port}/{name}"
        assert main([address, str(tmp_path / "star.jpg"), "--out", str(out), "--maps", str(maps)]) == 0
        (row,) = csv.DictReader(out.read_text().splitlines())
        assert (row["label"], row["model"].partition("@")[0]) == ("star", name)
        assert len([*maps.rglob("*.png")]) == 1


def test_another_bundle_for_one_model_costs_neither_a_request(models, tmp_path):
    other = demo_named("other", tmp_path)
    with (
        steady(models.port, jpeg(), RATE, "/birds/classify", ("birds", "other")) as to_birds,
        steady(models.port, jpeg(), RATE, "/shapes/classify") as to_shapes,
    ):
        restart_all(models.birds, bundle=other)
    assert to_birds.failures == to_shapes.failures == []
    assert to_birds.answers.keys() == {"birds", "other"}
    assert to_shapes.answers.keys() == {"shapes"}


@pytest.mark.parametrize("program", BALANCERS)
def test_a_model_without_replicas_is_a_problem_and_the_list_still_answers(need, tmp_path, program):
    need(program)
    with in_front_of_models(program, {name: [free_port()] for name in NAMES}, tmp_path) as balancer:
        answer = httpx.get(f"http://127.0.0.1:{balancer.port}/birds/model", timeout=20)
        listed = httpx.get(f"http://127.0.0.1:{balancer.port}/")
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:vit-serve:problem:unavailable")
    assert listed.status_code == 200


def test_the_list_in_kubernetes_is_that_of_nginx(need, tmp_path):
    need("nginx")
    ours = re.findall(r"location = /[^\n]*\{\n.*?\n        \}", (FOLDER / "nginx.conf").read_text(), re.DOTALL)
    text = Path("docker/kubernetes/models/list.conf").read_text()
    assert len(ours) == 3
    assert all(location in text for location in ours)
    with listening("nginx", nginx_file_of_list(["birds"], tmp_path, port := free_port()), port) as server:
        assert '<a href="birds">' in httpx.get(server.url).text
        assert [model["name"] for model in httpx.get(server.url, headers=JSON).json()] == ["birds"]
