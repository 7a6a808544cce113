"""A server that requires an API key."""

from pathlib import Path

import pytest

from tests.benchmarks.server import running
from tests.browser.stage import settle


@pytest.fixture(scope="module")
def guarded():
    """The address of a service that requires a key, under a path."""
    with running(api_keys="right-key", root_path="/vit") as server:
        yield f"{server.url}/vit"


@pytest.fixture
def opened(browser, guarded):
    """Open the page and answer its prompts: `opened("right-key")`."""
    contexts = []

    def page_with(*answers: str | None):
        context = browser.new_context()
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        waiting = list(answers)

        def answer(dialog):
            assert "API key" in dialog.message
            key = waiting.pop(0)
            dialog.dismiss() if key is None else dialog.accept(key)

        page.on("dialog", answer)
        page.goto(guarded)
        return page

    yield page_with
    for context in contexts:
        context.close()


def test_the_page_works_with_the_key(opened):
    page = opened("right-key")
    page.locator("#served b").wait_for()
    page.click("[data-sample=star]")
    settle(page)
    assert page.locator(".labels .name").first.inner_text() == "star"
    with page.expect_download() as started:
        page.click("#take-json")
    assert started.value.suggested_filename.endswith(".json")
    assert Path(started.value.path()).read_text().startswith("{")
    picture = page.locator("#gallery img").first
    picture.scroll_into_view_if_needed()
    assert picture.evaluate("(image) => image.decode().then(() => image.naturalWidth)") > 0
    page.reload()  # the tab keeps the key: a second prompt would find no answer
    page.locator("#served b").wait_for()


@pytest.mark.parametrize("answer", [None, "wrong-key"])
def test_the_page_asks_for_a_missing_key(opened, answer):
    page = opened(answer)
    page.get_by_text("Send an API key").wait_for()
