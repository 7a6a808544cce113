"""The keys of the page, wherever the focus is."""

import pytest

from tests.browser.stage import asked, settle

WAYS = [
    *("[data-sample=star]", ".queue .named button", ".labels button", "[value=rollout]", "#layer input"),
    *("#layer [value=mean]", "[name=label]", "#tab-inside", "#wall button"),
]


def test_they_work_after_each_way_of_choosing(page):
    with page.expect_file_chooser() as chooser:
        page.get_by_text("Choose image files").click()
    chooser.value.set_files("app/page/samples/star.jpg")
    for way in (None, *WAYS):
        if way:
            page.locator(way).first.click()
        settle(page)
        page.keyboard.press("Escape")  # closes a list
        for key in ("1", "3", "ArrowUp"):
            page.keyboard.press(key)
        assert (asked(page)["method"], asked(page).get("layer")) == ("class_token", "4"), way
        page.keyboard.press("1")
        page.keyboard.press("ArrowDown")
        assert (asked(page)["method"], asked(page).get("layer")) == ("evidence", "0"), way


def test_a_layer_stays_from_one_method_of_attention_to_the_other(looking):
    for key in ("3", "ArrowUp", "4", "3"):
        looking.keyboard.press(key)
    assert (asked(looking)["method"], asked(looking)["layer"]) == ("class_token", "4")
    looking.keyboard.press("1")
    assert asked(looking).get("layer", "") == ""


def test_arrows_step_through_layers_and_heads(looking):
    looking.keyboard.press("3")
    for key, expected in [
        ("ArrowUp", ("4", "mean")),  # from the last of six layers
        ("ArrowRight", ("4", "0")),
        ("ArrowRight", ("4", "1")),
        ("ArrowDown", ("5", "1")),
        ("ArrowDown", ("5", "1")),  # there is none below
        ("ArrowLeft", ("5", "0")),
    ]:
        looking.keyboard.press(key)
        assert (asked(looking).get("layer", "5"), asked(looking)["head"]) == expected
    assert looking.input_value("#layer :checked") == "5"
    looking.keyboard.press("?")
    assert looking.locator("#help").is_visible()


@pytest.mark.parametrize(("control", "key", "changed"), [
    ("[name=layer]:checked", "ArrowRight", {"layer": "mean"}),
    ("[name=method]:checked", "ArrowDown", {"method": "positive_evidence"}),
])  # fmt: skip
def test_a_control_that_tab_led_to_keeps_its_arrows(looking, control, key, changed):
    before = asked(looking)
    for _ in range(40):
        looking.keyboard.press("Tab")
        if looking.evaluate("(control) => document.activeElement.matches(control)", control):
            break
    looking.keyboard.press(key)
    assert {name: value for name, value in asked(looking).items() if before.get(name) != value} == changed
