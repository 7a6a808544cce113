"""A page of another origin that calls the service: allowed, not allowed, and refused."""

from base64 import b64encode

import pytest

from tests.support.server import running

CALL = """async ([address, headers, file]) => {
    const body = Uint8Array.from(atob(file), (c) => c.charCodeAt(0));
    try {
        const answer = await fetch(`${address}/classify`, { method: "POST", headers, body });
        const shown = Object.fromEntries(answer.headers);
        return { status: answer.status, shown, body: await answer.json() };
    } catch (error) {
        return { failed: error.name };
    }
}"""
ASKS = {"Content-Type": "image/jpeg", "X-Request-ID": "from-a-page", "X-Request-Timeout": "20", "baggage": "a=1"}
KEY = {"X-API-Key": "key"}


@pytest.fixture(scope="module")
def service(url):
    """It needs a key. It allows the origin of the demo's server, which stands for another site."""
    with running(cors_origins=url, api_keys="key", max_upload_bytes=20_000) as service:
        yield service.url


@pytest.fixture
def call(browser, url, service, star):
    """Call the service from a page of the site: `call("localhost", KEY)` from its other name, which is another origin.

    The policy of that page, which forbids calls, is not in force: that of the service is tested.
    """

    def called(host: str, headers: dict[str, str], body: bytes = star):
        page = context.new_page()
        page.goto(f"{url.replace('127.0.0.1', host)}/livez")
        return page.evaluate(CALL, [service, {**ASKS, **headers}, b64encode(body).decode()])

    with browser.new_context(bypass_csp=True) as context:
        yield called


@pytest.mark.parametrize("key", [KEY, {"Authorization": "Bearer key"}])
def test_the_page_of_an_allowed_origin_classifies(call, key):
    answer = call("127.0.0.1", key)
    assert answer["status"] == 200
    assert answer["body"]["results"][0]["predictions"][0]["label"] == "star"
    assert answer["shown"]["x-request-id"] == "from-a-page"
    assert "inference" in answer["shown"]["server-timing"]


@pytest.mark.parametrize(
    ("headers", "body", "status"), [({}, b"x", 401), (KEY, bytes(20_001), 413), (KEY, b"no image", 415)]
)
def test_it_reads_why_it_is_refused(call, headers, body, status):
    answer = call("127.0.0.1", headers, body)
    assert answer["status"] == answer["body"]["status"] == status
    assert answer["body"]["detail"]


@pytest.mark.parametrize("headers", [KEY, {}])
def test_the_page_of_another_origin_gets_nothing(call, headers):
    assert call("localhost", headers) == {"failed": "TypeError"}
