"""Images that the server has forgotten while the page shows them."""

from pathlib import Path

import pytest

from tests.browser.stage import address, asked, link, settle, shown, turn

FORGOTTEN = {"status": 404, "json": {"detail": "There are no maps with this id."}}


@pytest.fixture
def forget(complaints):
    """Let the server know the image that a page shows no more, by the id that it has now: `forget(page)`."""

    def forget(page) -> str:
        id = address(page).split("/")[2].split("?")[0]
        page.route(f"**/attention/{id}**", lambda route: route.fulfill(**FORGOTTEN))
        return id

    yield forget
    assert complaints
    assert {complaint[:15] for complaint in complaints} == {"404 /attention/"}
    complaints.clear()


def labels(page) -> list[str]:
    return page.locator(".labels li").all_inner_texts()


def test_the_file_is_sent_again_and_all_that_the_page_shows_stays(looking, visit, forget):
    before, sent = labels(looking), []
    looking.on("request", lambda request: sent.append(request.url) if request.url.endswith("/classify") else None)
    turn(looking, "What if")
    looking.get_by_role("gridcell").nth(9).click()
    first = forget(looking)
    turn(looking, "Inside")
    for part in ("#wall button", ".receipt", ".lens"):  # all three ask for what is gone
        looking.locator(part).first.wait_for()
    assert len(sent) == 1
    turn(looking, "Answer")
    looking.keyboard.press("3")
    settle(looking)
    assert asked(looking)["method"] == "class_token"
    assert labels(looking) == before
    assert looking.locator("#expired").is_hidden()
    assert looking.locator(".queue .chosen").count() == 1
    second = forget(looking)
    with looking.expect_download() as started:
        looking.click("#take-json")
    assert started.value.failure() is None
    turn(looking, "What if")
    looking.get_by_role("button", name="Cover", exact=True).click()
    looking.locator("#outcome table").wait_for()
    assert len(sent) == 2
    assert not {first, second} & set(link(looking).replace("#id=", "").split("&"))
    assert shown(visit(link(looking))) == shown(looking)


@pytest.mark.parametrize("trouble", ["is gone", "shows something else"])
def test_a_file_that_is_gone_or_has_changed_is_asked_for(page, star, tmp_path, forget, trouble):
    file = tmp_path / "a.jpg"
    file.write_bytes(star)
    page.set_input_files("#file", file)
    settle(page)
    if trouble == "is gone":
        file.unlink()
    else:  # some browsers send what is there now
        heart = Path("app/page/samples/heart.jpg").read_bytes()
        page.route("**/classify", lambda route: route.continue_(post_data=heart))
    forget(page)
    page.keyboard.press("3")
    page.get_by_role("heading", name="This link has expired").wait_for()
    assert page.locator("#map-pane").is_hidden()


def test_labels_of_a_link_stay_when_it_expires(looking, visit, forget):
    page = visit(link(looking))
    page.locator(".labels li").nth(4).wait_for()
    settle(page)
    before = labels(page)
    forget(page)
    page.keyboard.press("3")
    page.get_by_role("heading", name="This link has expired").wait_for()
    assert labels(page) == before
    assert page.locator("#controls").is_hidden()
