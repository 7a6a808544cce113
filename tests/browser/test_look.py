"""How the page looks: narrow screens, both themes, contrast, names for screen readers."""

import pytest

from tests.browser.stage import settle, turn

THEMES = ("light", "dark")


def luminance(color: list[float]) -> float:
    """Relative luminance of an sRGB colour, 0 to 255 (WCAG 2.2)."""
    linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in color]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: list[float], other: list[float]) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("width", [390, 768])
def test_no_page_scrolls_sideways(visit, width):
    page = visit(viewport={"width": width, "height": 740})
    for step in (
        lambda: page.click("[data-sample=arrow]"),
        lambda: page.click("#appearance summary"),
        lambda: page.check("[name=beside]"),
        lambda: turn(page, "What if"),
        lambda: turn(page, "Inside"),
        lambda: page.get_by_role("button", name="Layer 5, head 3").click(),
    ):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        step()
        settle(page)
    page.locator("#heads td").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


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


def test_the_models_pictures_have_the_same_colours_in_both_themes(visit):
    """Their colours are data, and their labels are dark, so they stand on white."""
    page, drawn = visit(color_scheme="dark"), []
    page.click("#to-model")
    picture = page.locator("#gallery img").first
    picture.evaluate("(image) => image.decode()")
    for theme in reversed(THEMES):
        page.emulate_media(color_scheme=theme)
        drawn.append(picture.screenshot())
        assert picture.evaluate("(e) => getComputedStyle(e.parentNode).backgroundColor") == "rgb(255, 255, 255)"
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("width", [390, 900])
def test_no_method_leaves_a_gap_below_its_sentence_and_six_layers_stand_in_one_row(visit, width):
    page = visit(viewport={"width": width, "height": 844})
    page.click("[data-sample=arrow]")
    settle(page)
    lines = """(es) => es.map((e) => {
        const text = document.createRange();
        text.selectNodeContents(e);
        return new Set([...text.getClientRects()].map((r) => r.top)).size;
    })"""
    counts = page.locator("#meaning span").evaluate_all(lines)
    assert max(counts) - min(counts) <= 1, counts  # how wide letters are depends on the fonts of the machine
    assert len({box.bounding_box()["y"] for box in page.locator("#layer label").all()}) == 1


def test_the_map_takes_a_third_of_a_phone_and_leaves_with_its_section(visit):
    page = visit(viewport={"width": 390, "height": 844})
    page.click("[data-sample=arrow]")
    settle(page)
    page.locator("#appearance").evaluate("(e) => e.scrollIntoView({ block: 'end' })")
    box = page.locator("#stage").bounding_box()
    assert (box["y"], box["height"] <= 844 / 3) == (0, True)
    turn(page, "Inside")
    assert page.locator("#stage").is_hidden()


def test_everything_to_use_or_to_see_has_a_name(looking):
    for tab, part in (("What if", "#patches [role=gridcell]"), ("Inside", "#wall button"), ("Answer", "#map")):
        turn(looking, tab)
        looking.locator(part).first.wait_for()
    nameless = """(es) => es.filter((e) => !(e.ariaLabel || e.labels?.[0]?.textContent || e.alt || e.textContent ||
        e.querySelector("img")?.alt || "").trim() && e.alt !== "").map((e) => e.outerHTML)"""
    controls = looking.locator("button, a, input, select, summary, img, [role=img], [role=gridcell]")
    assert controls.evaluate_all(nameless) == []
