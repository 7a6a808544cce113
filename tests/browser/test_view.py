"""The whole view: its address restores it, and it suits narrow screens, both themes, keyboards and screen readers."""

import pytest

from tests.browser.stage import alike, asked, link, settle, shown, turn

THEMES = ("light", "dark")


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
    assert alike(shown(other), before)
    assert asked(other) == asked(looking)
    assert other.locator("#original-pane").is_visible()
    assert [other.locator(part).input_value() for part in ("#layer :checked", "[name=colormap]")] == ["3", "magma"]
    assert other.locator(".labels .name").first.inner_text() == "star"


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
    assert (page.locator("#intro-title").is_visible(), page.locator("#answer").is_visible()) == (True, False)
    page.go_forward()
    page.go_forward()
    page.go_forward()
    page.locator(".queue .chosen", has_text="heart").wait_for()
    assert asked_for == []


def test_expired_maps_give_a_message(visit, complaints):
    page = visit("#id=AAAAAAAAAAAAAAAAAAAAAA&tab=inside")
    page.locator("#trouble").wait_for()
    assert page.get_by_role("heading", name="This link has expired").is_visible()
    page.wait_for_load_state("networkidle")
    assert {complaint[:16] for complaint in complaints} == {"404 /attention/A"}
    complaints.clear()
    page.click("[data-sample=star]")
    page.locator("#trouble").wait_for(state="hidden")
    settle(page)
    page.locator("#controls").wait_for()


def test_an_invalid_link_gives_a_message(looking, complaints):
    assert "id=" in link(looking)
    looking.evaluate("location.hash += '&layer=99'")
    looking.locator("#trouble").wait_for()
    assert looking.locator("#trouble").inner_text().startswith("layer must be 0 to 5")
    assert looking.locator("#map-pane").is_hidden()
    looking.locator("#cover-part[hidden]").wait_for(state="attached")
    assert complaints
    complaints.clear()


def luminance(color: list[float]) -> float:
    """Relative luminance of an sRGB colour, 0 to 255 (WCAG 2.2)."""
    linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in color]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: list[float], other: list[float]) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_no_page_scrolls_sideways(visit):
    page = visit(viewport={"width": 390, "height": 740})
    for step in (
        lambda: page.click("[data-sample=arrow]"),
        lambda: page.click("#appearance summary"),
        lambda: page.check("[name=beside]"),
        lambda: turn(page, "What if"),
        lambda: turn(page, "Inside"),
        lambda: page.get_by_role("button", name="Layer 5, head 3").click(),
    ):
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        step()
        settle(page)
    page.locator("#heads td").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("theme", THEMES)
def test_text_and_controls_have_contrast_and_the_focus_is_visible(visit, theme):
    page = visit(color_scheme=theme)

    def color(name: str) -> list[float]:
        return page.evaluate(
            """(name) => {
                const probe = document.body.appendChild(document.createElement("i"));
                probe.style.color = `var(--${name})`;
                return getComputedStyle(probe).color.match(/[\\d.]+/g).map(Number);
            }""",
            name,
        )

    for text in ("ink", "soft", "accent", "wrong"):
        for ground in ("paper", "surface", "sunk"):
            assert contrast(color(text), color(ground)) >= 4.5, (text, ground)
    assert contrast(color("accent-ink"), color("accent")) >= 4.5
    for text in ("soft", "accent"):
        assert contrast(color(text), color("wash")) >= 4.5, text
    for edge in ("edge", "plus", "minus"):
        assert contrast(color(edge), color("paper")) >= 3, edge
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_the_theme_follows_the_system_until_it_is_chosen(visit):
    page, color = visit(color_scheme="dark"), "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(color)
    page.emulate_media(color_scheme="light")
    assert page.evaluate(color) != dark
    page.click("#theme")
    page.click("#theme")
    assert page.evaluate(color) == dark
    page.reload()
    assert page.evaluate(color) == dark  # remembered
    assert page.locator("#theme").get_attribute("aria-label") == "Theme: dark"


def test_everything_to_use_or_to_see_has_a_name(looking):
    for tab, part in (
        ("Compare", "#ask-ramp[aria-label]"),
        ("What if", "#patches [role=gridcell]"),
        ("Inside", "#wall button"),
        ("Answer", "#map"),
    ):
        turn(looking, tab)
        looking.locator(part).first.wait_for()
    nameless = """(es) => es.filter((e) => !(e.ariaLabel || e.labels?.[0]?.textContent || e.alt || e.textContent ||
        e.querySelector("img")?.alt || "").trim() && e.alt !== "").map((e) => e.outerHTML)"""
    controls = looking.locator("button, a, input, select, summary, img, [role=img], [role=gridcell]")
    assert controls.evaluate_all(nameless) == []
