"""Two models behind one address: a list of both, the same files in the other one, and both side by side."""

import shutil

import pytest

from tests.browser.stage import settle, turn
from tests.support.balancers import in_front_of_models
from tests.support.edited import demo_named
from tests.support.server import running


@pytest.fixture
def url(tmp_path):
    if not shutil.which("nginx", path="/usr/sbin:/usr/bin"):
        pytest.skip("nginx is not installed")
    with (
        running(demo_named("birds", tmp_path), root_path="/birds") as birds,
        running(root_path="/shapes") as shapes,
        in_front_of_models("nginx", {"birds": [birds.port], "shapes": [shapes.port]}, tmp_path) as balancer,
    ):
        yield f"{balancer.url}/birds"


def test_models_of_one_address_are_listed_switched_with_the_files_and_set_side_by_side(visit, url):
    page = visit()
    page.set_input_files("#file", [f"app/page/samples/{name}.jpg" for name in ("star", "heart")])
    page.locator(".queue .named").nth(1).wait_for()
    settle(page)
    page.select_option("#switch", "/shapes/")
    page.wait_for_url("**/shapes/**")
    page.locator(".queue .named").nth(1).wait_for()
    assert page.locator("#served b").inner_text() == "shapes"
    assert page.title() == "shapes · vit-serve"
    settle(page)
    turn(page, "Compare")
    page.locator("#versus figure").nth(1).wait_for()
    titles = page.locator("#versus figcaption").all_inner_texts()
    assert [title.split()[:2] for title in titles] == [["shapes", "star,"], ["birds", "star,"]]
    page.click("#versus-all")
    page.locator("#grid .other").nth(1).wait_for()
    assert page.locator("#grid .other").first.inner_text().startswith("birds: ")
    page.goto(url.removesuffix("/birds"))
    page.locator(".models a").nth(1).wait_for()
    assert page.locator(".models b").all_inner_texts() == ["birds", "shapes"]
