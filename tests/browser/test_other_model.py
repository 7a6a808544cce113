"""A server that runs another model than the page was loaded for: it has been updated, or a canary stands beside it."""

from tests.browser.stage import address, pick, settle

OTHER = {"x-model-digest": "f" * 64}
SAID = "The server answered with another model than before. Try again, or load this page again."


def by_other_model(route) -> None:
    answer = route.fetch()
    route.fulfill(response=answer, headers={**answer.headers, **OTHER})


def test_its_labels_and_maps_are_not_shown_until_the_first_model_answers_again(page, star, complaints):
    page.route("**/classify", by_other_model, times=1)
    pick(page, {"a.jpg": star})
    page.locator(".refused", has_text=SAID).wait_for()
    page.get_by_role("button", name="Try again", exact=True).click()
    settle(page)
    page.route("**/classify", by_other_model)  # it knows no image of the first
    page.route(f"**{address(page).split('?')[0]}?**", lambda route: route.fulfill(status=404, json={}))
    page.keyboard.press("3")
    page.locator("#trouble", has_text=SAID).wait_for()
    assert page.locator("#map-pane").is_hidden()
    page.unroute("**/classify")
    page.get_by_role("button", name="Try again", exact=True).click()
    settle(page)
    assert {complaint[:15] for complaint in complaints} == {"404 /attention/"}
    complaints.clear()


def test_a_map_of_it_that_the_browser_has_kept_is_asked_for_again(page):
    asked = []
    page.on("request", lambda request: asked.append(request) if "/attention/" in request.url else None)
    page.route("**/attention/*format=json", by_other_model, times=1)
    page.click("[data-sample=star]")
    settle(page)
    assert asked[0].url == asked[1].url
