import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import CannotStart, NotFound
from app.http.paths import below, check_port, check_root_path, is_public

PUBLIC = "/ /livez /readyz /health /v2/health/live /v2/health/ready /docs /openapi.json /page/main.js"
OTHERS = "/classify /attention/x /model /metrics // /livez/ /page /nowhere /v2 /v2/models/a/ready"


@pytest.mark.parametrize("path", f"{PUBLIC} {OTHERS}".split())
def test_only_probes_page_and_description_are_public(path):
    public = path in PUBLIC.split()
    assert [is_public(method, path) for method in ("GET", "HEAD", "POST")] == [public, public, False]


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


@given(root=st.sampled_from(["", "/a", "/a/b", "/b.a"]), path=st.text("ab.%/", max_size=6))
def test_with_the_prefix_the_rest_is_what_follows_and_without_it_the_path_stays(root, path):
    assert below(root, f"{root}/{path}") == f"/{path}"
    if path != root and not path.startswith(f"{root}/"):
        assert below(root, path) == path


def test_the_prefix_itself_is_the_home_page():
    assert [below("/vit", path) for path in ("/vit", "/vitamin")] == ["/", "/vitamin"]
    assert below("", "") == ""


@pytest.mark.parametrize("root_path", ["/model", "/model/vit", "/docs", "/page", "/static-offline-docs", "/livez"])
def test_a_prefix_that_is_a_path_of_the_service_is_refused(root_path):
    for other in ("", "/vit", "/vit/model", "/models", "/livez2"):
        check_root_path(other, paths=["/", "/model/{name}"])
    with pytest.raises(CannotStart, match=f"{root_path}, but /{root_path.split('/')[1]} is a path of the service"):
        check_root_path(root_path, paths=["/", "/model/{name}"])
