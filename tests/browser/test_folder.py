"""All images at once: their order, those of one label, their maps, keys, and the table."""

import csv
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.stage import link, pick, settle, turn

NAMES = ("star", "heart", "arrow", "bolt", "hourglass", "crescent")


@pytest.fixture
def folder(page):
    """The page with the samples twice, so many that it shows all at once."""
    samples = {name: Path(f"app/page/samples/{name}.jpg").read_bytes() for name in NAMES}
    pick(page, {f"{i}-{name}.jpg": data for i in (2, 1) for name, data in samples.items()})
    page.locator("#grid li").nth(11).wait_for()
    return page


def names(page) -> list[str]:
    return page.locator("#grid small:not([class])").all_inner_texts()


def scores(page) -> list[float]:
    texts = page.locator("#grid button").all_inner_texts()
    return [float(text.split(" %")[0].split(" ")[-1]) for text in texts]


def test_many_files_are_shown_at_once_in_their_order_with_their_maps(folder):
    assert folder.get_by_role("tab", selected=True).inner_text() == "All 12"
    assert names(folder) == [f"{i}-{name}.jpg" for i in (2, 1) for name in NAMES]
    assert folder.locator("#grid [aria-current=true] small").first.inner_text() == "2-star.jpg"
    folder.locator("#grid canvas").nth(5).wait_for()


def test_a_link_to_all_images_shows_the_one_that_it_names(folder, visit):
    page = visit(link(folder))
    settle(page)
    assert page.get_by_role("tab", selected=True).inner_text() == "Answer"
    assert page.locator(".labels .name").first.inner_text() == "star"


def test_they_are_sorted_filtered_stepped_through_by_keys_and_taken_as_a_table(folder):
    folder.select_option("[name=sort]", "score")
    assert scores(folder) == sorted(scores(folder), reverse=True)
    folder.select_option("[name=sort]", "name")
    assert names(folder) == sorted(names(folder))
    folder.select_option("[name=only]", label="arrow (4)")  # the crescent is one of them
    expected = ["1-arrow.jpg", "1-crescent.jpg", "2-arrow.jpg", "2-crescent.jpg"]
    assert names(folder) == expected
    assert folder.locator("#counted").inner_text() == "4 of 12 images"
    with folder.expect_download() as started:
        folder.click("#take-csv")
    rows = list(csv.DictReader(Path(started.value.path()).read_text().splitlines()))
    assert [row["image"] for row in rows] == expected
    assert {row["label"] for row in rows} == {"arrow"}
    assert all(float(row["score"]) >= float(row["score_2"]) >= float(row["score_5"]) for row in rows)
    assert [f"{100 * float(row['score']):.1f}" for row in rows] == [f"{score:.1f}" for score in scores(folder)]
    folder.locator("#grid button").nth(1).click()
    assert folder.get_by_role("tab", selected=True).inner_text() == "Answer"
    for key, shown in (("j", "2-arrow.jpg"), ("j", "2-crescent.jpg"), ("j", "2-crescent.jpg"), ("k", "2-arrow.jpg")):
        folder.keyboard.press(key)
        assert folder.locator(".labels .file").inner_text() == shown
    turn(folder, "All 12")
    assert folder.locator("#grid [aria-current=true]").inner_text().endswith("2-arrow.jpg")


def test_whoever_comes_back_to_all_images_is_where_the_chosen_one_is(folder):
    folder.set_viewport_size({"width": 400, "height": 500})
    last = folder.locator("#grid button").last
    last.click()
    turn(folder, "All 12")
    expect(last).to_be_in_viewport()


def test_the_first_file_of_a_drop_is_shown_and_stands_there_before_its_answer(page, star):
    """It is answered after the second one."""
    held = []
    page.route("**/classify", lambda route: held.append(route))
    with page.expect_request("**/classify"):
        pick(page, {"first.jpg": star, "second.jpg": star})
    page.wait_for_function("document.getElementById('map').width === 320")  # the picture, before any answer
    while len(held) < 2:
        page.wait_for_timeout(50)
    held[1].continue_()
    page.locator(".queue .named", has_text="second.jpg").wait_for()
    assert page.locator(".queue .chosen").count() == 0
    held[0].continue_()
    page.locator(".queue .chosen", has_text="first.jpg").wait_for()
    settle(page)
