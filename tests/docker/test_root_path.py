"""Under a path of another site: the lines of docs/deployment.md in front of a real replica."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import kubernetes_validate
import pytest
import yaml

from tests.benchmarks.server import running
from tests.load.balancers import BALANCERS
from tests.support.documented_proxies import PROXIES, in_front, lines

INSIDE = ["/livez", "/readyz", "/metrics", "/%6detrics", "//metrics"]


@pytest.fixture(scope="module")
def replica() -> Iterator[int]:
    with running(root_path="/vit") as server:
        yield server.port


@pytest.fixture(params=PROXIES)
def client(request, need, replica, tmp_path) -> Iterator[httpx.Client]:
    need(request.param.split()[0])
    with (
        in_front(request.param, replica, tmp_path) as proxy,
        httpx.Client(base_url=f"http://127.0.0.1:{proxy.port}", timeout=20, follow_redirects=True) as client,
    ):
        yield client


def test_the_service_works_under_its_path(client, star):
    (result,) = client.post("/vit/classify", content=star).json()["results"]
    assert result["predictions"][0]["label"] == "star"
    assert client.get(result["attention"]).headers["content-type"] == "image/png"
    assert client.post(f"{result['attention']}/verify").status_code == 200
    for picture in client.get("/vit/model/inspect").json()["pictures"]:
        assert client.get(picture["png"]).headers["content-type"] == "image/png"


def test_page_and_description_find_their_files(client):
    for place in ("/vit", "/vit/docs"):
        page = client.get(place)
        links = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
        assert len(links) > 2
        assert {client.get(str(page.url.join(link))).status_code for link in links} == {200}
    assert str(client.get("/vit").url).endswith("/vit/")


def test_probes_and_metrics_stay_inside_and_other_paths_of_the_site_do_not_reach_the_service(client):
    assert {client.get(f"/vit{path}").status_code for path in INSIDE} == {404}
    assert client.get("/model").status_code in (404, 503)  # 503: HAProxy has no other backend
    assert client.get("/vitamin").status_code in (404, 503)


@pytest.mark.parametrize("name", BALANCERS)
def test_the_shipped_configurations_keep_probes_inside_with_and_without_a_path(need, replica, tmp_path, name):
    need(name)
    with BALANCERS[name]([replica], tmp_path) as balancer:
        base = f"http://127.0.0.1:{balancer.port}"
        for prefix in ("", "/vit"):
            assert httpx.get(f"{base}{prefix}/model").status_code == 200
            assert {httpx.get(f"{base}{prefix}{path}").status_code for path in INSIDE} == {404}


def test_the_ingress_is_valid_and_names_the_service():
    ingress = yaml.safe_load(lines("ingress"))
    kubernetes_validate.validate(ingress, "1.31", strict=True)
    (rule,) = ingress["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    service = yaml.safe_load(Path("docker/kubernetes/base/service.yaml").read_text())
    assert backend["name"] == service["metadata"]["name"]
    assert backend["port"]["name"] in [port["name"] for port in service["spec"]["ports"]]
