"""A real server and a real browser. Any error or warning in the browser fails the test."""

import shutil
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.benchmarks.server import running
from tests.browser.stage import settle

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of the service with the demo bundle."""
    with running() as server:
        yield server.url


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
def visit(browser, server, complaints) -> Iterator[Callable[..., Page]]:
    """Open the page: `visit("#id=...", viewport=..., color_scheme=...)`, each time in a context of its own."""
    contexts = []
    host = urlsplit(server).netloc

    def opened(fragment: str = "", **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("console", lambda message: complaints.extend(messages(message)))
        page.on("response", lambda r: complaints.append(f"{r.status} {path_of(r.url)}") if r.status >= 400 else None)
        page.on("request", lambda r: complaints.append(f"asks {r.url}") if elsewhere(r.url, host) else None)
        page.goto(f"{server}/{fragment}")
        page.locator("#served b").wait_for()
        return page

    yield opened
    for context in contexts:
        context.close()
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


def elsewhere(url: str, host: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme not in {"blob", "data"} and parts.netloc != host


def path_of(url: str) -> str:
    return urlsplit(url).path
