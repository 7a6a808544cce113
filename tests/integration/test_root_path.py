"""VIT_ROOT_PATH: every path with the prefix and without it, links with it, and no way around a key or a port."""

import base64
import re
from pathlib import Path

import pytest

from app.bundle import load_bundle
from app.main import ROUTERS
from app.settings import DEMO_BUNDLE

ROOT = "/vit"
CALLS = sorted(
    (method, route.path) for router in ROUTERS for route in router.routes for method in getattr(route, "methods", ())
)
STATIC = [("GET", path) for path in ("/docs", "/openapi.json", "/static-offline-docs/swagger-ui.css")]
EACH = [*CALLS, *STATIC]
PUBLIC = re.compile(r"(GET|HEAD) (/|/page/.*|/livez|/readyz|/health|/v2/health/\w+)")
VALUES = {
    "{id}": "AAAAAAAAAAAAAAAAAAAAAA",
    "/model/inspect/{name}": "/model/inspect/filters",
    "/models/{name}": "/models/shapes",
    "{version}": "1",
    "{name:path}": "main.js",
}
VECTORS = [[1.0] * load_bundle(DEMO_BUNDLE).manifest.features]
PIXELS = {"name": "images", "datatype": "UINT8", "shape": [1, 64, 64, 3], "data": [0] * 64 * 64 * 3}


def filled(path: str) -> str:
    for name, value in VALUES.items():
        path = path.replace(name, value)
    return path


@pytest.fixture(scope="module")
def rooted(serve):
    """It has a key, which the client sends unless another is given."""
    with serve(root_path=ROOT, api_keys="key") as client:
        client.headers["X-API-Key"] = "key"
        yield client


@pytest.fixture
def ask(star):
    def asked(client, method, path, **headers):
        if path.endswith("/infer"):
            body = {"json": {"inputs": [PIXELS]}}
        elif path.endswith("/v1/embeddings"):
            body = {"json": {"input": {"image": base64.b64encode(star).decode()}}}
        else:
            body = {"json": VECTORS} if path.endswith("/evidence") else {"content": star}
        takes_one = method == "POST" and not path.endswith(("/verify", "/cover"))
        return client.request(method, path, headers=headers, **(body if takes_one else {}))

    return asked


@pytest.mark.parametrize(("method", "path"), EACH)
def test_every_path_has_the_same_status_with_and_without_the_prefix(rooted, client, ask, method, path):
    assert "{" not in filled(path)
    expected = ask(client, method, filled(path)).status_code
    assert expected == (404 if "{id}" in path else 200)
    assert [ask(rooted, method, prefix + filled(path)).status_code for prefix in ("", ROOT)] == 2 * [expected]


@pytest.mark.parametrize("prefix", ["", ROOT])
def test_links_in_answers_carry_the_prefix_and_work(rooted, star, prefix):
    (result,) = rooted.post(f"{prefix}/classify", content=star).json()["results"]
    assert result["attention"] == f"{ROOT}/attention/{result['id']}"
    assert rooted.get(result["attention"]).headers["content-type"] == "image/png"
    for picture in rooted.get(f"{prefix}/model/inspect").json()["pictures"]:
        assert picture["png"].startswith(f"{ROOT}/model/inspect/")
        assert rooted.get(picture["png"]).headers["content-type"] == "image/png"
        assert rooted.get(picture["json"]).headers["content-type"] == "application/json"
    how = rooted.get(f"{prefix}/attention").json()
    paths = re.findall(r"(?<![\w}])/[a-z]\S*", " ".join(how.values()))
    assert len(paths) == 4
    assert all(path.startswith(f"{ROOT}/") for path in paths)


@pytest.mark.parametrize("prefix", ["", ROOT])
def test_the_description_of_the_api_says_where_it_is(rooted, client, prefix):
    assert rooted.get(f"{prefix}/openapi.json").json()["servers"] == [{"url": ROOT}]
    assert "servers" not in client.get("/openapi.json").json()
    page = rooted.get(f"{prefix}/docs")
    assert "script-src 'self' 'unsafe-inline'" in page.headers["content-security-policy"]
    links = re.findall(r"""(?:src|href)="(/[^"]+)"|"?url"?: ['"](/[^'"]+)""", page.text)
    assert len(links) == 4
    for link in (a or b for a, b in links):
        assert link.startswith(f"{ROOT}/")
        assert rooted.get(link).status_code == 200


def test_the_prefix_alone_leads_to_the_page(rooted):
    answer = rooted.get(ROOT, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, f"{ROOT}/")
    page = Path("app/page/index.html").read_bytes()
    assert page == rooted.get(ROOT).content == rooted.get(f"{ROOT}/").content == rooted.get("/").content


AROUND = ["/vit", "/vit/vit", "//vit", "/vit/", "/v%69t", "/vit%2F", "/%2Fvit", "/vit/.", "/x/../vit", "/VIT", "/vit;"]


@pytest.mark.parametrize("prefix", AROUND)
def test_no_spelling_of_the_prefix_avoids_the_key(rooted, ask, prefix):
    for method, path in (call for call in CALLS if not PUBLIC.fullmatch(" ".join(call))):
        wrong, right = (ask(rooted, method, prefix + filled(path), **{"X-API-Key": key}) for key in ("", "key"))
        assert (wrong.status_code, right.status_code == 401) == (401, False), path
