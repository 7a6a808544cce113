"""A real server and a real browser. Any error or warning in the browser fails the test."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.stage import settle

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Playwright keeps an event loop running in this thread, so the browser closes before other folders are tested."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"none of {', '.join(NAMES)} is installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


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
