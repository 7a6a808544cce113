"""What if this were not there? Patches are painted, covered, and the answers shown side by side."""

import pytest
from PIL import Image

from tests.browser.stage import PHONE, asked, pick, settle, turn


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
    painting.mouse.click(*middle(painting, 2, 4))
    assert painted(painting) == ["Row 2, column 3", "Row 2, column 5"]
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
    page.touchscreen.tap(*middle(page, 4, 5))
    page.touchscreen.tap(*middle(page, 6, 0))
    assert painted(page) == ["Row 4, column 5", "Row 6, column 0"]
    page.touchscreen.tap(*middle(page, 4, 5))
    assert painted(page) == ["Row 6, column 0"]
    drag(page, [middle(page, 2, i) for i in (1, 2, 3)])
    assert painted(page) == [*(f"Row 2, column {i}" for i in (1, 2, 3)), "Row 6, column 0"]
    before = page.evaluate("scrollY")
    drag(page, [middle(page, i, 7) for i in (6, 5, 4, 3)])  # upward, which scrolls
    page.wait_for_function("before => scrollY > before", arg=before)
    assert painted(page) == [*(f"Row 2, column {i}" for i in (1, 2, 3)), "Row 6, column 0"]
    cover(page, "Cover")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("size", [(64, 64), (100, 800), (800, 100)])
def test_the_grid_is_large_on_a_phone_whatever_the_size_of_the_image(visit, encode, size):
    page = visit(**PHONE)
    pick(page, {"noise.png": encode(Image.effect_noise(size, 64))})
    turn(page, "What if")
    page.get_by_role("gridcell").first.wait_for()
    grid, image = (page.locator(part).bounding_box() for part in ("#patches", "#board img"))
    assert grid["width"] == grid["height"] > 8 * 24
    assert min(image["width"], image["height"]) == pytest.approx(grid["width"], abs=1)
    for corner, side in (("x", "width"), ("y", "height")):  # the square in its middle fills the grid
        assert image[corner] + image[side] / 2 == pytest.approx(grid[corner] + grid[side] / 2, abs=1)


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
