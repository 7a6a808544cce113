"""The address restores the view, also for other people and in other browsers."""

from tests.browser.stage import asked, link, settle, shown


def test_a_link_restores_everything_in_a_fresh_browser(looking, visit):
    page = looking
    page.check("[value=class_token]")
    page.click("#appearance summary")
    page.locator("#layer input").fill("3")
    page.locator("#head input").fill("2")
    page.select_option("[name=colormap]", "magma")
    page.select_option("[name=scale]", "percentile")
    page.select_option("[name=interpolation]", "nearest")
    page.select_option("[name=threshold]", "0.8")
    page.locator("[name=alpha]").fill("0.75")
    page.uncheck("[name=fade]")
    page.check("[name=beside]")
    before = shown(page)
    other = visit(link(page), viewport={"width": 1000, "height": 700})
    assert shown(other) == before
    assert asked(other) == asked(page)
    assert other.locator("#original-pane").is_visible()
    assert other.locator("#layer output").inner_text() == "3"
    assert other.locator("[name=colormap]").input_value() == "magma"
    assert other.locator(".labels .name").first.inner_text() == "star"


def test_a_link_of_evidence_restores_both_classes(looking, visit):
    page = looking
    page.check("[name=method][value=evidence]")
    against = page.locator("[name=against] option").nth(1).get_attribute("value")
    page.select_option("[name=against]", against)
    before = shown(page)
    other = visit(link(page))
    assert shown(other) == before
    other.locator(f"[name=against] option[value='{against}']").wait_for(state="attached")
    assert other.locator("[name=against]").input_value() == against


def test_the_address_restores_the_view_after_a_link_to_a_part_of_the_page(looking):
    page = looking
    before = link(page)
    assert "id=" in before
    page.click("#to-model")
    page.wait_for_function("scrollY > 0")
    assert link(page) == before


def test_the_link_can_be_copied(looking):
    page = looking
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.keyboard.press("ArrowUp")
    page.click("#copy")
    page.get_by_text("Copied.").wait_for()
    assert "layer=5" in page.evaluate("navigator.clipboard.readText()")


def test_a_link_with_an_unknown_method_opens_on_the_usual_one(looking, visit):
    fragment = link(looking)
    other = visit(f"{fragment}&method=gradients")
    assert shown(other) == shown(looking)
    assert asked(other)["method"] == "evidence"


def test_expired_maps_give_a_message(visit, complaints):
    page = visit("#id=AAAAAAAAAAAAAAAAAAAAAA")
    page.locator("#trouble").wait_for()
    assert page.locator("#trouble").inner_text().startswith("The server no longer has the maps of this image.")
    assert page.locator("#controls").is_hidden()
    page.wait_for_load_state("networkidle")
    assert {complaint[:16] for complaint in complaints} == {"404 /attention/A"}
    complaints.clear()
    page.click("[data-sample=star]")
    settle(page)
    assert page.locator("#trouble").is_hidden()
    assert page.locator("#controls").is_visible()


def test_an_invalid_link_gives_a_message(looking, complaints):
    page = looking
    assert "id=" in link(page)
    page.evaluate("location.hash += '&layer=99'")
    page.locator("#trouble").wait_for()
    assert page.locator("#trouble").inner_text().startswith("layer must be 0 to 5")
    assert page.locator("#map-pane").is_hidden()
    page.locator("#cover-part").wait_for(state="hidden")
    assert complaints
    complaints.clear()
