"""app/door/paths.py: which paths are public, and which port answers which path."""

import pytest

from app.door.paths import check_port, is_public, upload_route
from app.errors import NotFound


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/livez",
        "/readyz",
        "/health",
        "/v2/health/live",
        "/v2/health/ready",
        "/docs",
        "/openapi.json",
        "/page/main.js",
    ],
)
def test_probes_page_and_description_are_public(path):
    assert is_public("GET", path)
    assert is_public("HEAD", path)
    assert not is_public("POST", path)


@pytest.mark.parametrize(
    "path",
    [
        "/classify",
        "/attention/x",
        "/model",
        "/metrics",
        "//",
        "/livez/",
        "/page",
        "/nowhere",
        "/v2",
        "/v2/models/a/ready",
    ],
)
def test_other_paths_are_not_public(path):
    assert not is_public("GET", path)


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/classify", "/classify"),
        ("/", "/"),
        ("/v2/models/a b/infer", "/v2/models/{name}/infer"),
        ("/v2/models/a/versions/1/infer", "/v2/models/{name}/versions/{version}/infer"),
        ("/v2/models/a/b/infer", None),
        ("/v2/models/a/infer/", None),
        ("/attention/x/verify", None),
    ],
)
def test_routes_of_uploads(path, route):
    assert upload_route(path) == route


@pytest.mark.parametrize(
    ("path", "port", "answered"),
    [
        ("/metrics", 9000, True),
        ("/livez", 9000, True),
        ("/readyz", 9000, True),
        ("/classify", 9000, False),
        ("/", 9000, False),
        ("/metrics", 8000, False),
        ("/livez", 8000, True),
        ("/classify", 8000, True),
    ],
)
def test_a_metrics_port_answers_metrics_and_probes_only(request_of, path, port, answered):
    if answered:
        check_port(request_of(path, port=port), metrics_port=9000)
    else:
        with pytest.raises(NotFound):
            check_port(request_of(path, port=port), metrics_port=9000)


@pytest.mark.parametrize("path", ["/metrics", "/livez", "/classify", "/"])
def test_a_single_port_answers_every_path(request_of, path):
    check_port(request_of(path), metrics_port=0)  # raises NotFound at the wrong one of two ports, see above
