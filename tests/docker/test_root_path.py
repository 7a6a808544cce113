"""Under a path of another site: the lines of docs/deployment.md in front of a real replica."""

import re
import textwrap
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.support.balancers import BALANCERS, listening
from tests.support.pages import block
from tests.support.processes import PATIENCE_S
from tests.support.server import free_port, running

NGINX = """
daemon off;
pid {folder}/pid;
error_log stderr warn;
events {{}}
http {{
    access_log off;
    client_body_buffer_size 1m;
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
INSIDE = ["/livez", "/readyz", "/metrics", "/%6detrics", "//metrics"]


def lines(name: str) -> str:
    return textwrap.dedent(block(name, Path("docs/deployment.md")))


def nginx(replica: int, port: int, folder: Path, *, strip: bool) -> str:
    text, changed = re.subn("(http://127.0.0.1:)8000;", rf"\g<1>{replica}{'/' * strip};", lines("nginx"))
    assert changed == 1
    return NGINX.format(folder=folder, port=port, lines=text)


def haproxy(replica: int, port: int, folder: Path) -> str:
    text = lines("haproxy").replace(":8000", f":{replica}").replace("bind :8080", f"bind 127.0.0.1:{port}")
    return HAPROXY.format(lines=text)


PROXIES = {
    "nginx that leaves the prefix": partial(nginx, strip=False),
    "nginx that takes it away": partial(nginx, strip=True),
    "haproxy": haproxy,
}


@pytest.fixture(scope="module")
def replica() -> Iterator[int]:
    with running(root_path="/vit") as server:
        yield server.port


@pytest.mark.parametrize("name", PROXIES)
def test_the_service_and_its_page_work_under_the_path_and_probes_stay_inside(need, replica, tmp_path, star, name):
    need(program := name.split()[0])
    port, configuration = free_port(), tmp_path / "configuration"
    configuration.write_text(PROXIES[name](replica, port, tmp_path))
    with (
        listening(program, configuration, port) as proxy,
        httpx.Client(base_url=f"http://127.0.0.1:{proxy.port}", timeout=PATIENCE_S, follow_redirects=True) as client,
    ):
        (result,) = client.post("/vit/classify", content=star).json()["results"]
        assert client.get(result["attention"]).headers["content-type"] == "image/png"
        assert client.post(f"{result['attention']}/verify").status_code == 200
        page = client.get("/vit")
        assert str(page.url).endswith("/vit/")
        links = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
        assert {client.get(str(page.url.join(link))).status_code for link in links} == {200}
        assert {client.get(f"/vit{path}").status_code for path in INSIDE} == {404}
        for path in ("/model", "/vitamin"):
            assert client.get(path).status_code in (404, 503)  # 503: HAProxy has no other backend


@pytest.mark.parametrize("name", BALANCERS)
def test_the_shipped_configurations_keep_probes_inside_with_and_without_a_path(need, replica, tmp_path, name):
    need(name)
    with BALANCERS[name]([replica], tmp_path) as balancer:
        base = f"http://127.0.0.1:{balancer.port}"
        for prefix in ("", "/vit"):
            assert httpx.get(f"{base}{prefix}/model", timeout=PATIENCE_S).status_code == 200
            answers = [httpx.get(f"{base}{prefix}{path}", timeout=PATIENCE_S) for path in INSIDE]
            assert {answer.status_code for answer in answers} == {404}
