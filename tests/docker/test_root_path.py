"""Under a path of another site: the lines of docs/deployment.md in front of a real replica."""

import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import kubernetes_validate
import pytest
import yaml

from tests.benchmarks.server import free_port
from tests.load.balancers import BALANCERS, Balancer, running_balancer
from tests.load.server import served

PAGE = Path("docs/deployment.md").read_text()
INSIDE = ["/livez", "/readyz", "/metrics", "/%6detrics", "//metrics"]

NGINX = """
daemon off;
pid {folder}/pid;
error_log stderr warn;
events {{}}
http {{
    access_log off;
    client_body_buffer_size 1m;
    proxy_buffers 16 64k;
    server {{
        listen 127.0.0.1:{port};
        location / {{ return 404; }}
        {lines}
    }}
}}
"""
HAPROXY = """
defaults
    mode http
    timeout client 15s
    timeout connect 1s
{lines}
"""


def lines(name: str) -> str:
    found = re.search(f"<!-- {name} -->\n(.*?)\n<!-- /{name} -->", PAGE, re.DOTALL)
    assert found
    return textwrap.dedent(found[1])


def nginx(replica: int, port: int, folder: Path, *, strip: bool) -> tuple[list[str], str]:
    text, changed = re.subn("(http://127.0.0.1:)8000;", rf"\g<1>{replica}{'/' * strip};", lines("nginx"))
    assert changed == 1
    command = ["nginx", "-e", "stderr", "-p", str(folder), "-c", str(folder / "configuration")]
    return command, NGINX.format(folder=folder, port=port, lines=text)


def haproxy(replica: int, port: int, folder: Path) -> tuple[list[str], str]:
    text = lines("haproxy").replace(":8000", f":{replica}").replace("bind :8080", f"bind 127.0.0.1:{port}")
    return ["haproxy", "-db", "-f", str(folder / "configuration")], HAPROXY.format(lines=text)


PROXIES = {
    "nginx that leaves the prefix": lambda *place: nginx(*place, strip=False),
    "nginx that takes it away": lambda *place: nginx(*place, strip=True),
    "haproxy": haproxy,
}


@contextmanager
def in_front(proxy: str, replica: int, folder: Path) -> Iterator[Balancer]:
    port = free_port()
    command, text = PROXIES[proxy](replica, port, folder)
    (folder / "configuration").write_text(text)
    with running_balancer(command, port, folder) as balancer:
        yield balancer


@pytest.fixture(scope="module")
def replica(tmp_path_factory) -> Iterator[int]:
    with served(tmp_path_factory.mktemp("replica"), root_path="/vit") as server:
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
    assert client.get(f"{result['attention']}/wall").headers["content-type"] == "image/png"
    assert client.get(f"{result['attention']}/report").status_code == 200
    assert client.post(f"{result['attention']}/verify").status_code == 200
    for picture in client.get("/vit/model/inspect").json()["pictures"]:
        assert client.get(picture["png"]).headers["content-type"] == "image/png"
    assert client.get("/vit/openapi.json").json()["servers"] == [{"url": "/vit"}]


def test_page_and_description_find_their_files(client):
    for place in ("/vit", "/vit/docs"):
        page = client.get(place)
        links = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
        assert len(links) > 2
        assert {client.get(str(page.url.join(link))).status_code for link in links} == {200}
    assert str(client.get("/vit").url).endswith("/vit/")


@pytest.mark.parametrize("path", INSIDE)
def test_probes_and_metrics_stay_inside(client, path):
    assert client.get(f"/vit{path}").status_code == 404


def test_nothing_else_of_the_site_is_the_services(client):
    assert client.get("/model").status_code in (404, 503)  # 503: HAProxy has no other backend
    assert client.get("/vitamin").status_code in (404, 503)


@pytest.mark.parametrize("name", BALANCERS)
def test_the_shipped_configurations_keep_probes_and_verification_under_a_path(need, replica, tmp_path, name):
    need(name)
    with BALANCERS[name]([replica], tmp_path) as balancer:
        base = f"http://127.0.0.1:{balancer.port}"
        assert httpx.get(f"{base}/vit/model").status_code == 200
        assert [httpx.get(f"{base}/vit{path}").status_code for path in INSIDE] == [404] * len(INSIDE)


def test_the_ingress_is_valid_and_names_the_service():
    ingress = yaml.safe_load(lines("ingress"))
    kubernetes_validate.validate(ingress, "1.31", strict=True)
    (rule,) = ingress["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    service = yaml.safe_load(Path("docker/kubernetes/base/service.yaml").read_text())
    assert backend["name"] == service["metadata"]["name"]
    assert backend["port"]["name"] in [port["name"] for port in service["spec"]["ports"]]
