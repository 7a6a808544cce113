"""app/door/paths.py: what is open to everybody, and which port answers what."""

import pytest

from app.door.paths import check_port, is_public
from app.errors import NotFound


@pytest.mark.parametrize("path", ["/", "/livez", "/readyz", "/docs", "/openapi.json", "/page/main.js"])
def test_probes_page_and_description_are_public(path):
    assert is_public(path)


@pytest.mark.parametrize(
    "path", ["/classify", "/attention/x", "/model", "/metrics", "//", "/livez/", "/page", "/nowhere"]
)
def test_everything_else_is_not(path):
    assert not is_public(path)


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
def test_metrics_at_a_port_of_their_own(request_of, path, port, answered):
    if answered:
        check_port(request_of(path, port=port), metrics_port=9000)
    else:
        with pytest.raises(NotFound):
            check_port(request_of(path, port=port), metrics_port=9000)


@pytest.mark.parametrize("path", ["/metrics", "/livez", "/classify", "/"])
def test_one_port_answers_everything(request_of, path):
    check_port(request_of(path), metrics_port=0)  # raises NotFound at the wrong one of two ports, see above
