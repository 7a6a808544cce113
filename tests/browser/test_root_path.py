"""The page under a path of another site, behind the nginx of docs/deployment.md."""

import pytest

from tests.benchmarks.server import running
from tests.browser.stage import address, link, settle, shown
from tests.support.documented_proxies import in_front


@pytest.fixture(scope="module")
def replica():
    with running(root_path="/vit") as replica:
        yield replica


@pytest.fixture(scope="module", params=["as it is", "nginx that leaves the prefix", "nginx that takes it away"])
def server(request, replica, tmp_path_factory):
    """The address of the service under /vit: its own port, or nginx."""
    if request.param == "as it is":
        yield f"{replica.url}/vit"
    else:
        with in_front(request.param, replica.port, tmp_path_factory.mktemp("proxy")) as proxy:
            yield f"http://127.0.0.1:{proxy.port}/vit"


def test_it_classifies_and_shows_maps(looking):
    page = looking
    assert page.locator(".labels .name").first.inner_text() == "star"
    assert address(page).startswith("/vit/attention/")
    page.check("[name=method][value=evidence]")
    settle(page)
    page.locator("#receipt tr").first.wait_for()
    page.locator("#heads td").first.wait_for()
    picture = page.locator("#gallery img").first
    picture.scroll_into_view_if_needed()
    assert picture.evaluate("(image) => image.decode().then(() => image.naturalWidth)") > 0
    page.click("#measure")
    page.locator("#curves figure").first.wait_for()
    page.wait_for_load_state("networkidle")


def test_its_address_restores_the_view(looking, visit, server):
    page = looking
    page.locator("#layer input").fill("3")
    before = shown(page)
    fragment = link(page)
    assert page.evaluate("location.href") == f"{server}/{fragment}"
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
