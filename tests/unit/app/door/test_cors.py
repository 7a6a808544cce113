import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import MutableHeaders

from app.door.cors import Cors

APP = "https://app.example"
ASKS = {"access_control_request_method": "POST"}


def completed(cors: Cors, request, **headers: str) -> dict[str, str]:
    answer = MutableHeaders(headers)
    cors.complete(answer, request)
    return dict(answer)


def test_an_allowed_origin_may_read(request_of):
    found = completed(Cors([APP, "http://b"]), request_of(origin=APP), vary="Accept")
    assert found["access-control-allow-origin"] == APP
    shown = set(found["access-control-expose-headers"].split(", "))
    assert shown >= {"ETag", "Inference-Header-Content-Length", "Retry-After", "X-Model-Digest", "X-Request-ID"}
    assert found["vary"] == "Accept, Origin"
    assert "access-control-allow-credentials" not in found


NEAR = ("null", f"{APP}.evil", f"{APP}:443", f"{APP}/", APP.upper(), f"{APP}, {APP}", "*")


@given(origin=st.text(st.characters(max_codepoint=255)) | st.sampled_from(NEAR))
def test_no_other_origin_may_read_and_the_answer_varies(request_of, origin):
    assert completed(Cors([APP]), request_of()) == {"vary": "Origin"}
    if origin != APP:
        assert completed(Cors([APP]), request_of(origin=origin)) == {"vary": "Origin"}


@pytest.mark.parametrize("headers", [{}, {"origin": APP}, {"origin": "null"}])
def test_a_star_allows_every_origin_and_without_origins_nothing_is_added(request_of, headers):
    found = completed(Cors(["*"]), request_of(**headers))
    assert found["access-control-allow-origin"] == "*"
    assert "vary" not in found
    assert completed(Cors([]), request_of(**headers)) == {}


@pytest.mark.parametrize(
    ("method", "headers", "is_one"),
    [
        ("OPTIONS", {"origin": APP, **ASKS}, True),
        ("POST", {"origin": APP, **ASKS}, False),
        ("OPTIONS", {"origin": APP}, False),
        ("OPTIONS", ASKS, False),
        ("OPTIONS", {"origin": "https://evil.example", **ASKS}, False),
    ],
)
def test_a_preflight_needs_an_allowed_origin(request_of, method, headers, is_one):
    request = request_of("/classify", method, **headers)
    assert [Cors(origins).is_preflight(request) for origins in ([APP], [])] == [is_one, False]


def test_a_preflight_lists_methods_and_headers():
    answer = Cors([APP]).preflight()
    assert answer.headers["access-control-allow-methods"] == "GET, HEAD, POST"
    allowed = set(answer.headers["access-control-allow-headers"].split(", "))
    assert allowed >= {"*", "Authorization"}  # which * leaves out
    assert allowed >= {"Inference-Header-Content-Length", "X-API-Key", "If-None-Match"}  # for browsers without *
