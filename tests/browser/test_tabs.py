"""The tabs, and the words of the field that explain themselves."""

from tests.browser.stage import PHONE, link, settle, turn

PANELS = {"Answer": "#answer", "What if": "#what-if", "Inside": "#inside"}


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
    looking.get_by_role("tab", name="Inside").focus()
    for key, name in (("ArrowRight", "Answer"), ("ArrowLeft", "Inside"), ("Home", "Answer"), ("ArrowRight", "What if")):
        looking.keyboard.press(key)
        assert chosen(looking) == name
        assert looking.evaluate("document.activeElement.innerText") == name
    assert looking.locator("[role=tab][tabindex='0']").count() == 1
    other = visit(link(looking))
    settle(other)
    assert chosen(other) == "What if"
    assert chosen(visit(link(looking).replace("what-if", "unknown"))) == "Answer"


def test_what_a_tab_shows_is_asked_for_when_it_is_opened(looking):
    asked = []
    looking.on("request", lambda request: asked.append(request.url))
    looking.keyboard.press("3")
    settle(looking)
    assert not any("/wall" in url or "/report" in url for url in asked)
    turn(looking, "Inside")
    looking.locator("#wall button").first.wait_for()
    looking.locator(".lens").wait_for()


def test_a_word_of_the_field_explains_itself_to_pointer_keys_and_finger(looking, visit):
    def explained(word) -> bool:
        return word.evaluate("(word) => getComputedStyle(word, '::after').content.includes(word.dataset.means)")

    words = looking.locator("dfn")
    assert {word.lower() for word in words.all_text_contents()} >= {"evidence", "logit", "layer", "head"}
    assert all(word.get_attribute("aria-description") == word.get_attribute("data-means") for word in words.all())
    layer = looking.locator("#layer dfn")
    assert not explained(layer)
    layer.hover()
    assert explained(layer)
    looking.mouse.move(0, 0)
    layer.focus()
    assert explained(layer)
    looking.keyboard.press("Escape")
    assert not explained(layer)
    looking.hover("[value=rollout]")
    assert "through all layers" in looking.locator("#meaning .shown").inner_text()
    phone = visit(link(looking), **PHONE)
    settle(phone)
    phone.tap("#layer dfn")
    assert explained(phone.locator("#layer dfn"))
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
