"""The page under a path of another site."""

import pytest

from tests.benchmarks.server import running
from tests.browser.stage import address, link, settle, shown, visible


@pytest.fixture(scope="module")
def server():
    """The address of the service under /vit."""
    with running(root_path="/vit") as server:
        yield f"{server.url}/vit"


def test_it_classifies_and_shows_maps(looking):
    assert address(looking).startswith("/vit/attention/")
    looking.check("[name=method][value=evidence]")
    settle(looking)
    looking.locator("#receipt tr").first.wait_for()
    looking.locator("#heads td").first.wait_for()
    assert visible(looking.locator("#gallery img").first)
    looking.click("#measure")
    looking.locator("#curves figure").first.wait_for()
    looking.wait_for_load_state("networkidle")


def test_its_address_restores_the_view(looking, visit, server):
    looking.locator("#layer input").fill("3")
    before = shown(looking)
    fragment = link(looking)
    assert looking.evaluate("location.href") == f"{server}/{fragment}"
    assert shown(visit(fragment)) == before


def test_its_links_stay_under_the_path(visit, server):
    page = visit()
    page.get_by_role("link", name="API").click()
    page.locator(".opblock").first.wait_for()
    assert page.url.startswith(f"{server}/docs")
    assert page.locator(".servers option").first.inner_text() == "/vit"
    page.go_back()
    page.click(".brand")
    page.locator("#served b").wait_for()
    assert page.url == f"{server}/"
    page.goto(server)
    page.locator("#served b").wait_for()
    assert page.url == f"{server}/"
