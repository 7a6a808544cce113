import pytest

from app.door.paths import check_port, is_public, upload_route
from app.errors import NotFound

PUBLIC = "/ /livez /readyz /health /v2/health/live /v2/health/ready /docs /openapi.json /page/main.js"
OTHERS = "/classify /attention/x /model /metrics // /livez/ /page /nowhere /v2 /v2/models/a/ready"


@pytest.mark.parametrize("path", PUBLIC.split())
def test_probes_page_and_description_are_public(path):
    assert [is_public(method, path) for method in ("GET", "HEAD", "POST")] == [True, True, False]


@pytest.mark.parametrize("path", OTHERS.split())
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
    ("port", "answered", "refused"),
    [(9000, "/metrics /livez /readyz", "/classify /"), (8000, "/livez /classify", "/metrics")],
)
def test_a_metrics_port_answers_metrics_and_probes_only(request_of, port, answered, refused):
    for path in answered.split():
        check_port(request_of(path, port=port), metrics_port=9000)
    for path in refused.split():
        with pytest.raises(NotFound):
            check_port(request_of(path, port=port), metrics_port=9000)
        check_port(request_of(path, port=port), metrics_port=0)
