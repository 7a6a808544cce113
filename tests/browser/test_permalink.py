"""The address restores the view, also for other people and in other browsers."""

from tests.browser.stage import asked, link, settle, shown, turn


def test_a_link_restores_everything_in_a_fresh_browser(looking, visit):
    looking.check("[value=class_token]")
    looking.click("#appearance summary")
    looking.check("#layer [value='3']")
    looking.check("#head [value='2']")
    looking.select_option("[name=colormap]", "magma")
    looking.select_option("[name=scale]", "percentile")
    looking.select_option("[name=interpolation]", "nearest")
    looking.select_option("[name=threshold]", "0.8")
    looking.locator("[name=alpha]").fill("0.75")
    looking.uncheck("[name=fade]")
    looking.check("[name=beside]")
    before = shown(looking)
    other = visit(link(looking), viewport={"width": 1000, "height": 700})
    assert shown(other) == before
    assert asked(other) == asked(looking)
    assert other.locator("#original-pane").is_visible()
    assert [other.locator(part).input_value() for part in ("#layer :checked", "[name=colormap]")] == ["3", "magma"]
    assert other.locator(".labels .name").first.inner_text() == "star"


def test_a_link_of_evidence_restores_both_classes(looking, visit):
    looking.check("[name=method][value=evidence]")
    looking.fill("[name=label]", "bolt")
    looking.fill("[name=against]", "heart")
    before = shown(looking)
    other = visit(link(looking))
    assert shown(other) == before
    assert [other.input_value(f"[name={name}]") for name in ("label", "against")] == ["bolt", "heart"]
    other.locator(".labels .name", has_text="star").wait_for()  # the likeliest is first, whatever is explained
    assert other.locator(".labels .name").first.inner_text() == "star"


def test_the_address_keeps_the_image_on_the_way_to_the_pictures_of_the_model_and_can_be_copied(looking):
    before = link(looking)
    assert "id=" in before
    looking.click("#to-model")
    looking.wait_for_function("scrollY > 0")
    assert link(looking) == f"{before}&tab=inside"
    looking.context.grant_permissions(["clipboard-read", "clipboard-write"])
    looking.keyboard.press("ArrowUp")
    looking.click("#copy")
    looking.get_by_text("Copied.").wait_for()
    assert "layer=5" in looking.evaluate("navigator.clipboard.readText()")


def test_back_leads_to_the_image_and_the_tab_before_and_not_through_what_controls_did(page):
    def add(sample: str) -> None:
        page.click(f"[data-sample={sample}]")
        page.locator(".queue .chosen", has_text=sample).wait_for()
        settle(page)

    views = [link(page)]
    for step in (lambda: add("star"), lambda: turn(page, "Inside"), lambda: add("heart")):
        step()
        views.append(link(page))
    assert len(set(views)) == 4
    count = page.evaluate("history.length")
    for key in ("3", "ArrowUp", "o"):
        page.keyboard.press(key)
        assert link(page) not in views
    assert page.evaluate("history.length") == count

    def best() -> tuple[str, str]:
        (tab,) = page.get_by_role("tab", selected=True).all_inner_texts()
        return tab, page.locator(".labels .name").first.text_content()

    asked_for = []
    page.on("request", lambda request: asked_for.append(request.url) if "/classify" in request.url else None)
    for view, seen in ((views[2], ("Inside", "star")), (views[1], ("Answer", "star"))):
        page.go_back()
        assert link(page) == view
        assert best() == seen
        assert page.locator(".queue .chosen", has_text="star").is_visible()
    page.go_back()
    assert link(page) == views[0]
    assert (page.locator("h1").is_visible(), page.locator("#answer").is_visible()) == (True, False)
    page.go_forward()
    page.go_forward()
    page.go_forward()
    assert "heart" in page.locator(".queue .chosen").inner_text()
    assert asked_for == []


def test_a_link_with_an_unknown_method_opens_on_the_usual_one(looking, visit):
    fragment = link(looking)
    other = visit(f"{fragment}&method=gradients")
    assert shown(other) == shown(looking)
    assert asked(other)["method"] == "evidence"


def test_expired_maps_give_a_message(visit, complaints):
    page = visit("#id=AAAAAAAAAAAAAAAAAAAAAA&tab=inside")
    page.locator("#trouble").wait_for()
    assert page.get_by_role("heading", name="This link has expired").is_visible()
    assert page.locator("#trouble").inner_text().startswith("The server no longer has the maps of this image.")
    with page.expect_file_chooser():
        page.get_by_role("button", name="Add the file again").click()
    assert page.locator("#controls").is_hidden()
    page.wait_for_load_state("networkidle")
    assert {complaint[:16] for complaint in complaints} == {"404 /attention/A"}
    complaints.clear()
    page.click("[data-sample=star]")
    settle(page)
    assert page.locator("#trouble").is_hidden()
    assert page.locator("#controls").is_visible()


def test_an_invalid_link_gives_a_message(looking, complaints):
    assert "id=" in link(looking)
    looking.evaluate("location.hash += '&layer=99'")
    looking.locator("#trouble").wait_for()
    assert looking.locator("#trouble").inner_text().startswith("layer must be 0 to 5")
    assert looking.locator("#map-pane").is_hidden()
    looking.locator("#cover-part[hidden]").wait_for(state="attached")
    assert complaints
    complaints.clear()
