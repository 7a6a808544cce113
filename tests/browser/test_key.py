"""A server that requires an API key, under a path of another site."""

from pathlib import Path

import pytest

from tests.browser.stage import address, link, settle, shown, turn, visible
from tests.support.server import running


@pytest.fixture(scope="module")
def guarded():
    """The address of a service that requires a key, under a path."""
    with running(api_keys="right-key", root_path="/vit") as server:
        yield f"{server.url}/vit"


@pytest.fixture
def opened(browser, guarded):
    """Open the page and answer its prompt: `opened("right-key")`."""

    def page_with(answer: str | None):
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.once("dialog", lambda dialog: dialog.accept(answer) if answer else dialog.dismiss())
        page.goto(guarded)
        return page

    with browser.new_context() as context:
        yield page_with


def test_the_page_works_with_the_key_and_under_the_path(opened, guarded):
    page, failed = opened("right-key"), []
    page.locator("#served b").wait_for()  # the refusal that asks for the key may come after the load
    page.on("response", lambda answer: failed.append(answer.url) if answer.status >= 400 else None)
    page.click("[data-sample=star]")
    settle(page)
    assert page.locator(".labels .name").first.inner_text() == "star"
    assert address(page).startswith("/vit/attention/")
    with page.expect_download() as started:
        page.click("#take-json")
    assert Path(started.value.path()).read_text().startswith("{")
    turn(page, "Inside")
    assert visible(page.locator("#gallery img").first)
    for part in ("#receipt tr", "#heads td"):
        page.locator(part).first.wait_for()
    turn(page, "What if")
    page.click("#measure")
    page.locator("#curves figure").first.wait_for()
    turn(page, "Answer")
    page.check("#layer [value='3']")
    before, fragment = shown(page), link(page)
    assert page.evaluate("location.href") == f"{guarded}/{fragment}"
    page.reload()  # the tab keeps the key: a second prompt would find no answer
    assert shown(page) == before
    assert failed == []


def test_its_links_stay_under_the_path(opened, guarded):
    page = opened("right-key")
    page.locator("#served b").wait_for()
    assert page.url == f"{guarded}/"
    page.get_by_role("link", name="API").click()
    page.locator(".opblock").first.wait_for()
    assert page.url.startswith(f"{guarded}/docs")
    assert page.locator(".servers option").first.inner_text() == "/vit"
    page.go_back()
    page.click(".brand")
    page.locator("#served b").wait_for()
    assert page.url == f"{guarded}/"


@pytest.mark.parametrize(("answer", "said"), [(None, "Send an API key"), ("wrong-key", "This key is not known")])
def test_the_page_asks_for_a_missing_key(opened, answer, said):
    page = opened(answer)
    page.get_by_text(said).wait_for()
