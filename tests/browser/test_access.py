"""A server that requires an API key, under a path of another site, and pages of other origins that call it."""

from base64 import b64encode
from pathlib import Path

import pytest

from tests.browser.stage import address, alike, link, pick, settle, shown, turn
from tests.support.server import running

NO_DATA = """for (const name of ["localStorage", "sessionStorage"])
    Object.defineProperty(window, name, { get() { throw new DOMException("Access is denied.", "SecurityError"); } });"""
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
def guarded():
    """The address of a service that requires a key, under a path."""
    with running(api_keys="right-key", root_path="/vit") as server:
        yield f"{server.url}/vit"


@pytest.fixture
def asking(browser, guarded):
    """The page as it asks for the key."""
    with browser.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.goto(guarded)
        page.locator("#key").wait_for()
        yield page


@pytest.fixture
def opened(asking):
    """The page with the key."""
    enter(asking, "right-key")
    asking.locator("#served b").wait_for()
    return asking


def enter(page, key: str) -> None:
    """Type the key where the page has put the focus."""
    page.locator("#key-field:focus").fill(key)
    page.keyboard.press("Enter")


def test_the_page_works_with_the_key_and_under_the_path(opened, guarded):
    page, failed = opened, []
    assert page.locator("#key").is_hidden()
    above = guarded.removesuffix("vit")  # where the page looks for other models
    page.on("response", lambda r: failed.append(r.url) if r.status >= 400 and r.url != above else None)
    page.click("[data-sample=star]")
    settle(page)
    assert page.locator(".labels .name").first.inner_text() == "star"
    assert address(page).startswith("/vit/attention/")
    with page.expect_download() as started:
        page.click("#take-json")
    assert Path(started.value.path()).read_text().startswith("{")
    turn(page, "Model")
    page.locator("#gallery canvas").first.wait_for()
    turn(page, "Inside")
    for part in ("#receipt tr", "#heads td"):
        page.locator(part).first.wait_for()
    turn(page, "What if")
    page.click("#measure")
    page.locator("#curves figure").first.wait_for()
    turn(page, "Answer")
    page.check("#layer [value='3']")
    before, fragment = shown(page), link(page)
    assert page.evaluate("location.href") == f"{guarded}/{fragment}"
    page.reload()  # the tab keeps the key
    assert alike(shown(page), before)
    assert failed == []


def test_the_page_asks_until_it_has_a_key_that_is_known_and_keeps_files_until_then(asking, star):
    assert asking.get_by_label("This server requires an API key.").get_attribute("type") == "password"
    for wrong in ("wrong-key", "name=right-key", "clé…"):
        enter(asking, wrong)
        asking.locator("#key-said", has_text="The server does not know this key.").wait_for()
        asking.evaluate("document.getElementById('key-said').textContent = ''")
    asking.get_by_label("Theme").focus()
    pick(asking, {"mine.jpg": star})
    assert "waiting" in asking.locator(".queue li").inner_text()
    enter(asking, "right-key")  # the file has led back to the field
    settle(asking)
    assert "mine.jpg" in asking.locator(".queue .chosen").inner_text()


def test_a_key_that_is_no_longer_known_is_asked_for_again(opened):
    opened.evaluate("sessionStorage.setItem('vit-serve-key', 'old-key')")
    opened.click("[data-sample=star]")
    opened.locator("#key-said", has_text="The server does not know this key.").wait_for()
    enter(opened, "right-key")
    settle(opened)
    assert opened.locator("#key").is_hidden()


def test_a_browser_that_keeps_no_data_of_a_site_shows_the_page_too(asking):
    errors = []
    asking.on("pageerror", lambda error: errors.append(str(error)))
    asking.add_init_script(NO_DATA)
    asking.reload()
    enter(asking, "right-key")
    asking.click("[data-sample=star]")
    settle(asking)
    asking.click("#theme")
    assert asking.locator("#theme").get_attribute("aria-label") == "Theme: light"
    assert errors == []


def test_a_page_of_an_allowed_origin_reads_answers_and_refusals_and_one_of_another_origin_nothing(browser, url, star):
    """The demo's server stands for another site, and its other name for a third. The policy of that site's pages, which
    forbids calls, is not in force: that of the service is tested.
    """

    def call(host: str, headers: dict[str, str], body: bytes):
        page = context.new_page()
        page.goto(f"{url.replace('127.0.0.1', host)}/livez")
        return page.evaluate(CALL, [service.url, {**ASKS, **headers}, b64encode(body).decode()])

    with (
        running(cors_origins=url, api_keys="key", max_upload_bytes=20_000) as service,
        browser.new_context(bypass_csp=True) as context,
    ):
        answer = call("127.0.0.1", KEY, star)
        assert answer["body"]["results"][0]["predictions"][0]["label"] == "star"
        assert answer["shown"]["x-request-id"] == "from-a-page"
        assert "inference" in answer["shown"]["server-timing"]
        for headers, body, status in (({}, b"x", 401), (KEY, bytes(20_001), 413), (KEY, b"no image", 415)):
            answer = call("127.0.0.1", headers, body)
            assert answer["status"] == answer["body"]["status"] == status
        assert call("localhost", KEY, star) == {"failed": "TypeError"}
