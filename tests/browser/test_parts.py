"""The parts under the map: the receipt, the lens, the heads, the measurement, the model's own pictures."""

import pytest

from tests.browser.stage import address, asked, served, settle, turn, visible


def read(text: str) -> float:
    return float(text.replace("−", "-"))


def test_evidence_for_a_label_and_against_another(looking):
    looking.locator(".labels button").nth(1).click()
    settle(looking)
    second = looking.locator(".labels .name").nth(1).inner_text()
    assert asked(looking)["method"] == "evidence"
    looking.fill("[name=against]", "star")
    settle(looking)
    answer = served(looking, address(looking))
    assert (answer["label"], answer["against"]) == (second, "star")
    assert f"logit of {second} minus that to the logit of star" in looking.locator("#recipe").text_content()
    turn(looking, "Inside")
    looking.locator(".receipt .logit th", has_text=f"“{second}” − “star”").wait_for()
    turn(looking, "Answer")
    looking.fill("[name=label]", "star")  # a label is never compared with itself
    settle(looking)
    assert "against" not in asked(looking)


def test_receipt_lens_and_report_have_the_servers_numbers_and_a_head_can_be_chosen(looking):
    turn(looking, "Inside")
    looking.locator(".receipt").wait_for()
    id = looking.locator(".queue .chosen").get_attribute("data-id")
    answer = served(looking, f"/attention/{id}?method=evidence&format=json")["receipt"]
    rows = looking.locator(".receipt tr").all()
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
    page.click("#to-model")
    page.locator("#gallery li").first.wait_for()
    listed = served(page, "/model/inspect")["pictures"]
    assert page.locator("#gallery img").count() == len(listed) > 0
    assert all(map(visible, page.locator("#gallery img").all()))


def test_their_list_that_cannot_be_had_says_so_in_its_tab_and_holds_up_nothing(page, complaints):
    page.route("**/model/inspect", lambda route: route.fulfill(status=500, json={"detail": "Something failed."}))
    page.reload()
    page.click("[data-sample=star]")
    settle(page)
    turn(page, "Inside")
    page.get_by_text("Something failed.").wait_for()
    assert page.locator("#to-model").is_hidden()
    assert complaints == ["500 /model/inspect"]
    complaints.clear()


def test_the_head_of_the_page_names_the_model(page):
    model = served(page, "/model")
    assert page.locator("#served").inner_text().split() == [model["name"], model["digest"][:8], "OpenVINO", "fp32"]
    page.get_by_role("link", name="API").click()
    page.locator(".opblock").first.wait_for()  # under its content security policy
