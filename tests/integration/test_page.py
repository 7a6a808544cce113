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


def test_every_file_has_its_type_and_the_policy(client):
    for name in FILES:
        response = client.get(f"/page/{name}")
        assert response.status_code == 200, name
        assert response.headers["content-type"].split(";")[0] in TYPES[Path(name).suffix]
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy, name
        assert "unsafe" not in policy, name
        assert response.headers["x-content-type-options"] == "nosniff"


def test_nothing_else_is_served_and_a_first_visit_takes_at_most_300_kb(client):
    for name in ("nope.js", "../api/page.py", "..%2fapi%2fpage.py", "", "samples"):
        assert client.get(f"/page/{name}").status_code == 404, name
    files = [name for name in FILES if not name.startswith("list.")]  # of the list of a balancer
    assert sum(len(client.get(f"/page/{name}").content) for name in [*files, "colormaps.png"]) <= 300_000


@pytest.mark.parametrize("path", ["/", "/page/colormaps.png", "/static-offline-docs/swagger-ui.css"])
def test_a_range_is_ignored(client, path):
    whole = client.get(path)
    for asked in ("bytes=0-9", "bytes=99999999-", "items=0-5"):
        response = client.get(path, headers={"Range": asked})
        assert (response.status_code, response.content) == (200, whole.content)
        assert "accept-ranges" not in response.headers
