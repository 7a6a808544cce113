"""The tabs: patches that are covered, the receipt, the lens, the heads, the measurement, the model's own pictures."""

import pytest

from tests.browser.stage import PHONE, asked, link, served, settle, turn

PANELS = {"Answer": "#answer", "Compare": "#compare", "What if": "#what-if", "Inside": "#inside", "Model": "#model"}


def chosen(page) -> str:
    """The name of the tab whose panel, and no other, is shown."""
    (name,) = page.get_by_role("tab", selected=True).all_inner_texts()
    assert [panel for panel in PANELS.values() if page.locator(panel).is_visible()] == [PANELS[name]]
    assert page.get_by_role("tabpanel", name=name).is_visible()
    return name


def test_clicks_and_keys_turn_to_a_tab_and_the_link_keeps_it(looking, visit):
    assert chosen(looking) == "Answer"
    for name in PANELS:
        turn(looking, name)
        assert chosen(looking) == name
    looking.get_by_role("tab", name="Model").focus()
    for key, name in (("ArrowRight", "Answer"), ("ArrowLeft", "Model"), ("Home", "Answer"), ("ArrowRight", "Compare")):
        looking.keyboard.press(key)
        assert chosen(looking) == name
        assert looking.evaluate("document.activeElement.innerText") == name
    assert looking.locator("[role=tab][tabindex='0']").count() == 1
    other = visit(link(looking))
    settle(other)
    assert chosen(other) == "Compare"
    assert chosen(visit(link(looking).replace("compare", "unknown"))) == "Answer"


@pytest.fixture
def painting(looking):
    """The page with the patches of a sample, ready to be painted."""
    turn(looking, "What if")
    looking.get_by_role("gridcell").first.wait_for()
    looking.locator("#patches").scroll_into_view_if_needed()
    return looking


def painted(page) -> list[str]:
    """Row and column of each painted patch."""
    names = [cell.get_attribute("aria-label") for cell in page.get_by_role("gridcell", selected=True).all()]
    assert page.locator("#painted").inner_text() == f"{len(names)} of 64 patches"
    return [name.split(":")[0] for name in names]


def middle(page, row: int, column: int) -> tuple[float, float]:
    box = page.locator("#patches").bounding_box()
    return box["x"] + (column + 0.5) * box["width"] / 8, box["y"] + (row + 0.5) * box["height"] / 8


def drag(page, places: list[tuple[float, float]]):
    """Move a finger over the page, as the browser itself sees it: it may scroll instead."""
    fingers = page.context.new_cdp_session(page)
    for i, (x, y) in enumerate(places):
        event = "touchMove" if i else "touchStart"
        fingers.send("Input.dispatchTouchEvent", {"type": event, "touchPoints": [{"x": x, "y": y}]})
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def cover(page, button: str) -> dict:
    """The answer that the page shows after a button is pressed."""
    with page.expect_response(lambda response: "/cover?" in response.url) as answered:
        page.get_by_role("button", name=button, exact=True).click()
    page.locator("#outcome table").wait_for()
    return answered.value.json()


def test_the_mouse_paints_and_clears(painting):
    painting.mouse.move(*middle(painting, 2, 3))
    painting.mouse.down()
    for column in (4, 5):
        painting.mouse.move(*middle(painting, 2, column))
    painting.mouse.up()
    assert painted(painting) == ["Row 2, column 3", "Row 2, column 4", "Row 2, column 5"]
    painting.get_by_role("button", name="Clear").click()
    assert painted(painting) == []
    assert painting.get_by_role("button", name="Cover", exact=True).is_disabled()


def test_a_finger_paints_where_it_taps_or_drags(visit):
    page = visit(**PHONE)
    page.tap("[data-sample=heart]")
    settle(page)
    turn(page, "What if")
    page.get_by_role("gridcell").first.wait_for()
    page.locator("#patches").scroll_into_view_if_needed()
    page.touchscreen.tap(*middle(page, 6, 0))
    drag(page, [middle(page, 2, i) for i in (1, 2, 3)])
    assert painted(page) == [*(f"Row 2, column {i}" for i in (1, 2, 3)), "Row 6, column 0"]
    before = page.evaluate("scrollY")
    drag(page, [middle(page, i, 7) for i in (6, 5, 4, 3)])  # upward, which scrolls
    page.wait_for_function("before => scrollY > before", arg=before)
    assert painted(page) == [*(f"Row 2, column {i}" for i in (1, 2, 3)), "Row 6, column 0"]


def test_keys_paint_a_patch_at_a_time(painting):
    painting.get_by_role("gridcell").first.focus()
    for key in ("ArrowUp", "ArrowDown", "ArrowRight", " ", "ArrowRight", "Enter"):
        painting.keyboard.press(key)
    assert painted(painting) == ["Row 1, column 1", "Row 1, column 2"]
    painting.keyboard.press("Tab")
    painting.keyboard.press("Shift+Tab")
    painting.keyboard.press(" ")
    assert painted(painting) == ["Row 1, column 1"]
    assert "layer" not in asked(painting)  # the arrows of the page stay still


def test_the_answers_are_shown_side_by_side_until_other_patches_are_painted(painting):
    painting.select_option("#fill", "blur")
    painting.mouse.click(*middle(painting, 3, 3))
    answer = cover(painting, "Cover")
    assert (answer["patches"], answer["fill"]) == ([27], "blur")
    for side, outcome in enumerate(("before", "after")):
        shown = painting.locator(".sides ol").nth(side).locator("li span").all_inner_texts()
        assert shown == [prediction["label"] for prediction in answer[outcome]["predictions"]]
    numbers = painting.locator(".effects .number").all_inner_texts()
    expected = [answer[name] for name in ("evidence", "effect", "random_effect")]
    assert [float(number.replace("−", "-")) for number in numbers] == pytest.approx(expected, abs=6e-4)
    assert painting.locator(".effects .set").count() == answer["random_sets"]
    assert "Without this patch, the logit for “star”" in painting.locator("#cover-status").inner_text()
    painting.mouse.click(*middle(painting, 3, 4))
    assert (painting.locator("#outcome table").count(), painting.locator("#cover-status").inner_text()) == (0, "")


def test_the_top_of_the_map_on_show_can_be_covered_or_all_else(painting):
    top = cover(painting, "Top 10 %")
    assert top["map"]["method"] == "evidence"
    assert len(painted(painting)) == 6
    painting.locator("#outcome").evaluate("(outcome) => outcome.replaceChildren()")
    rest = cover(painting, "All but the top 10 %")
    assert len(painted(painting)) == 58
    assert sorted(top["patches"] + rest["patches"]) == list(range(64))
    with painting.expect_request(lambda request: "/cover?" in request.url) as sent:
        again = cover(painting, "Cover")
    assert again["patches"] == rest["patches"]
    assert "rest=true" in sent.value.url  # names the 6 others: an address has room for some thousands
    painting.keyboard.press("2")  # another map, and the same patches
    settle(painting)
    assert painting.locator("#outcome table").count() == 1
    turn(painting, "Answer")
    painting.locator(".labels button").nth(1).click()  # another label
    assert painting.locator("#outcome table").count() == 0


@pytest.mark.parametrize("button", ["Cover", "Top 10 %"])
def test_an_answer_for_another_label_is_not_shown(painting, button):
    """It arrives when the page shows that label no more."""
    held = []
    painting.route("**/cover?*", lambda route: held.append(route))
    painting.mouse.click(*middle(painting, 2, 3))
    with painting.expect_request("**/cover?*"):
        painting.get_by_role("button", name=button, exact=True).click()
    turn(painting, "Answer")
    painting.locator(".labels button").nth(1).click()
    turn(painting, "What if")
    assert painting.locator("#cover-status").inner_text() == ""
    (route,) = held
    route.continue_()
    painting.wait_for_timeout(200)
    assert painted(painting) == ["Row 2, column 3"]
    assert painting.locator("#outcome table").count() == 0


def read(text: str) -> float:
    return float(text.replace("−", "-"))


def test_receipt_lens_and_report_have_the_servers_numbers_and_a_head_can_be_chosen(looking):
    turn(looking, "Inside")
    looking.locator(".receipt").last.wait_for()
    id = looking.locator(".queue .chosen").get_attribute("data-id")
    answer = served(looking, f"/attention/{id}?method=evidence&format=json")["receipt"]
    rows = looking.locator(".receipt").last.locator("tr").all()
    written = {row.get_attribute("class"): read(row.locator(".number").inner_text()) for row in rows}
    assert written == pytest.approx(answer, abs=6e-4)
    assert sum(written.values()) == pytest.approx(2 * written["logit"], abs=3e-3)
    bars = [row.locator("i:not(.zero)").bounding_box() for row in rows]
    assert bars[1]["x"] + (bars[1]["width"] if answer["prefix"] < 0 else 0) == pytest.approx(
        bars[0]["x"] + (bars[0]["width"] if answer["patches"] > 0 else 0), abs=1.5
    )  # each bar starts where the one before it ended
    looking.locator(".lens").wait_for()
    row = looking.locator(".lens tbody tr").first
    assert (row.locator("th").inner_text(), row.locator("td").count()) == ("star", 6)
    looking.locator("#heads table").first.wait_for()
    report = served(looking, f"/attention/{id}/report")
    assert row.locator("td").last.inner_text() == f"{100 * report['lens']['scores'][-1][0]:.2f}"  # never 100
    cell = looking.locator("#heads table").nth(1).locator("tr").nth(2).locator("td").nth(3)
    assert read(cell.inner_text()) == pytest.approx(report["heads"]["distance"][2][3], abs=6e-3)
    cell.click()
    settle(looking)
    assert (asked(looking)["layer"], asked(looking)["head"]) == ("2", "3")
    assert looking.locator("#heads td.chosen").count() == 3  # in each of the three tables


def test_verifying_shows_curves_until_the_map_changes(looking):
    turn(looking, "What if")
    with looking.expect_response(lambda response: "/verify" in response.url) as answered:
        looking.click("#measure")
    measured = answered.value.json()
    assert measured["method"] == "evidence"
    looking.locator("#curves figure").nth(1).wait_for()
    keys = looking.locator("#curves .key").all_inner_texts()
    assert f"{measured['deletion']['area']:.3f}" in keys[0]
    assert f"{measured['insertion']['random_area']:.3f}" in keys[1]
    points = looking.locator("#curves polyline.map").first.get_attribute("points").split()
    assert len(points) == len(measured["deletion"]["scores"])
    assert "score for “star”" in looking.locator("#verify-status").inner_text()
    looking.keyboard.press("3")
    assert (looking.locator("#curves figure").count(), looking.locator("#verify-status").inner_text()) == (0, "")


def test_images_of_the_model_need_no_upload(page):
    assert page.locator("#gallery").is_hidden()
    page.emulate_media(color_scheme="dark")
    page.click("#to-model")
    page.locator("#gallery li").first.wait_for()
    listed = served(page, "/model/inspect")["pictures"]
    assert page.locator("#gallery h3").all_inner_texts() == [picture["title"] for picture in listed]
    assert page.locator("#gallery .positions canvas").count() == 64
    assert page.locator("#gallery circle").count() == 6 * 4
    assert page.locator("#gallery img").count() == 0  # which would be on white paper
