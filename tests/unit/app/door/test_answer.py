"""app/door/answer.py: the header fields that are added to every response."""

from starlette.datastructures import MutableHeaders

from app.door.answer import DOCS_POLICY, HEADERS, POLICY, complete
from app.door.cors import Cors


def completed(request, headers=None, *, path="/classify", closing=False) -> dict[str, str]:
    fields = MutableHeaders(headers or {})
    complete(fields, request, request_id="r-1", path=path, cors=Cors([]), closing=closing)
    return dict(fields)


def test_every_response_has_an_id_and_the_security_headers(request_of):
    fields = completed(request_of())
    assert fields["x-request-id"] == "r-1"
    assert {name.lower(): value for name, value in HEADERS.items()}.items() <= fields.items()
    assert "connection" not in fields


def test_headers_of_a_route_are_kept(request_of):
    own = {"cache-control": "private, max-age=9", "content-security-policy": "default-src 'self'"}
    assert own.items() <= completed(request_of(), own).items()


def test_only_the_description_of_the_api_may_run_inline_scripts(request_of):
    assert completed(request_of(), path="/docs")["content-security-policy"] == DOCS_POLICY
    assert completed(request_of(), path="/docs/x")["content-security-policy"] == POLICY


def test_a_connection_that_will_close_says_so(request_of):
    assert completed(request_of(), closing=True)["connection"] == "close"
