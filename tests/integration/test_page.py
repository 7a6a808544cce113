"""The files of the page: their headers, and which files are served."""

from pathlib import Path

import pytest

FILES = sorted(str(path.relative_to("app/page")) for path in Path("app/page").rglob("*.*"))
TYPES = {
    ".html": {"text/html"},
    ".css": {"text/css"},
    ".js": {"text/javascript", "application/javascript"},
    ".svg": {"image/svg+xml"},
    ".jpg": {"image/jpeg"},
}


@pytest.mark.parametrize("name", FILES)
def test_every_file_has_its_type_and_the_policy(client, name):
    response = client.get(f"/page/{name}")
    assert response.status_code == 200
    assert response.headers["content-type"].split(";")[0] in TYPES[Path(name).suffix]
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("asked", ["bytes=0-9", "bytes=5-2", "bytes=99999999-", "items=0-5"])
@pytest.mark.parametrize("path", ["/", "/page/colormaps.png", "/static-offline-docs/swagger-ui.css"])
def test_a_range_is_ignored(client, path, asked):
    whole = client.get(path)
    for method in ("GET", "HEAD"):
        response = client.request(method, path, headers={"Range": asked})
        assert (response.status_code, response.headers["content-length"]) == (200, str(len(whole.content)))
        assert "accept-ranges" not in response.headers


@pytest.mark.parametrize("name", ["nope.js", "../api/page.py", "..%2fapi%2fpage.py", "", "samples"])
def test_nothing_else_is_served(client, name):
    response = client.get(f"/page/{name}")
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"
