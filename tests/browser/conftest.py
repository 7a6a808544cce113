"""A real server and a real browser. Any error or warning in the browser fails the test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.stage import settle
from tests.support.chromium import chromium


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Playwright keeps an event loop running in this thread, so the browser closes before other folders are tested."""
    with ExitStack() as running:
        try:
            browser = running.enter_context(chromium())
        except FileNotFoundError as error:
            pytest.skip(str(error))
        yield browser


@pytest.fixture
def complaints() -> list[str]:
    """Errors and warnings of the browser. A test that causes one asserts it and clears the list."""
    return []


@pytest.fixture
def visit(browser, url, complaints) -> Iterator[Callable[..., Page]]:
    """Open the page: `visit("#id=...", viewport=..., color_scheme=...)`, each time in a context of its own."""
    contexts, host = ExitStack(), urlsplit(url).netloc

    def opened(fragment: str = "", **options):
        page = contexts.enter_context(browser.new_context(**options)).new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("console", lambda message: complaints.extend(messages(message)))
        page.on("response", lambda r: complaints.extend(refusals(r)))
        page.on("request", lambda r: complaints.append(f"asks {r.url}") if elsewhere(r.url, host) else None)
        page.goto(f"{url}/{fragment}")
        page.locator("#served b").wait_for()
        return page

    with contexts:
        yield opened
    assert complaints == []


@pytest.fixture
def page(visit) -> Page:
    """The page as a first-time visitor sees it."""
    return visit()


@pytest.fixture
def looking(page):
    """The page with the map of a star."""
    page.set_input_files("#file", "app/page/samples/star.jpg")
    settle(page)
    return page


def messages(message) -> list[str]:
    """Warnings and errors of the console. Failed requests are left out: their responses are recorded already."""
    if message.type not in {"error", "warning"} or "Failed to load resource" in message.text:
        return []
    return [f"{message.type}: {message.text}"]


def elsewhere(address: str, host: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme not in {"blob", "data"} and parts.netloc != host


def refusals(response) -> list[str]:
    return [f"{response.status} {urlsplit(response.url).path}"] if response.status >= 400 else []
