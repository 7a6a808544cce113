"""VIT_CORS_ORIGINS against a real process: what a browser asks first, and which answers its pages may read."""

import httpx
import pytest

from tests.load.connection import Connection, message
from tests.support.processes import served

APP = "https://app.example"
OTHER = "https://other.example"
ASK = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-api-key,x-request-timeout"}
KEY = {"X-API-Key": "key"}


@pytest.fixture(scope="module")
def server():
    """It has a key, two allowed origins, and a limit of 20 kB."""
    with served(cors_origins=f"{APP},http://localhost:3000", api_keys="key", max_upload_bytes=20_000) as server:
        yield server


@pytest.fixture
def ask(server):
    with httpx.Client(base_url=server.url, timeout=20) as client:
        yield client.request


def readable(answer: httpx.Response, origin: str = APP) -> bool:
    """As a browser decides it."""
    assert "Origin" in answer.headers["vary"]
    assert "access-control-allow-credentials" not in answer.headers
    return answer.headers.get("access-control-allow-origin") == origin


@pytest.mark.parametrize("path", ["/classify", "/attention/x", "/attention/x/verify", "/model", "/nowhere"])
def test_a_preflight_is_answered_without_a_key(ask, path):
    answer = ask("OPTIONS", path, headers={"Origin": APP, **ASK})
    assert (answer.status_code, answer.content) == (204, b"")
    assert readable(answer)
    allowed = answer.headers["access-control-allow-headers"].lower().split(", ")
    assert set(ASK["Access-Control-Request-Headers"].split(",")) <= set(allowed)
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert answer.headers["x-request-id"]


def test_a_page_of_an_allowed_origin_may_classify_and_read(ask, star):
    answer = ask("POST", "/classify", headers={"Origin": APP, **KEY}, content=star)
    assert answer.status_code == 200
    assert readable(answer)
    shown = answer.headers["access-control-expose-headers"].split(", ")
    assert {"X-Request-ID", "Server-Timing", "Retry-After", "ETag"} <= set(shown)
    link = answer.json()["results"][0]["attention"]
    drawn = ask("GET", link, headers={"Origin": APP, **KEY})
    assert readable(drawn)
    assert {"Accept", "Origin"} <= set(drawn.headers["vary"].split(", "))
    same = ask("GET", link, headers={"Origin": APP, "If-None-Match": drawn.headers["etag"], **KEY})
    assert same.status_code == 304
    assert readable(same)


BROKEN = {
    "a length in letters": (message("POST /classify", f"Origin: {APP}", "Content-Length: five"), 400),
    "too many fields": (message("GET /model", f"Origin: {APP}", *["X: y"] * 200), 431),
    "a field that is too long": (message("GET /model", f"Origin: {APP}", "X: " + "x" * 20_000), 431),
    "no chunks": (
        message("POST /classify", f"Origin: {APP}", "X-API-Key: key", "Transfer-Encoding: chunked", body=b"zz\r\n"),
        400,
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_refusals_of_broken_http_have_cors_headers(server, name):
    data, status = BROKEN[name]
    with Connection(server.port) as connection:
        connection.send(data)
        answer = connection.answers()[0]
    assert answer.status == status
    assert (answer.headers["access-control-allow-origin"], answer.headers["vary"]) == (APP, "Origin")
