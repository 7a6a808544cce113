"""The labels of an image, and the fields for the two that are explained: each asks for the label that is meant."""

import pytest

from tests.browser.stage import address, asked, served, settle, turn

LABEL, AGAINST = "[name=label]", "[name=against]"
UNLIKELY = "triangle"  # of the star


def offered(page, field: str) -> list[str]:
    return page.locator(field).evaluate("(field) => [...field.list.options].map((option) => option.value)")


def test_all_labels_are_offered_the_likeliest_first(looking):
    labels = served(looking, "/model")["manifest"]["labels"]
    likely = looking.locator(".labels .name").all_inner_texts()
    assert UNLIKELY not in likely
    assert looking.input_value(LABEL) == likely[0]
    looking.focus(LABEL)
    assert (looking.input_value(LABEL), looking.get_attribute(LABEL, "placeholder")) == ("", likely[0])
    assert offered(looking, LABEL) == [*likely, *(label for label in labels if label not in likely)]
    looking.focus(AGAINST)
    assert looking.input_value(LABEL) == likely[0]
    assert offered(looking, AGAINST)[:3] == ["no second label", *likely[:2]]


def test_an_unlikely_label_is_explained_by_keys_alone(looking):
    looking.focus(LABEL)
    looking.keyboard.type(UNLIKELY[:4].upper())
    assert offered(looking, LABEL) == [UNLIKELY]
    looking.keyboard.press("Enter")
    settle(looking)
    receipt = served(looking, address(looking))["receipt"]
    assert sum(receipt.values()) == pytest.approx(2 * receipt["logit"], abs=1e-3)
    turn(looking, "Inside")
    looking.locator(".receipt .logit th", has_text=f"Logit for “{UNLIKELY}”").wait_for()
    assert looking.locator(".labels [aria-pressed=true]").count() == 0


def test_a_text_that_names_no_label_or_several_changes_nothing_and_says_so(looking):
    before = asked(looking)
    for text, said in (("zebra", "The model has no label “zebra”."), ("cr", "“cr” is part of 2 labels. Choose one.")):
        looking.fill(LABEL, text)
        looking.keyboard.press("Enter")
        assert looking.inner_text("#no-label") == said
    looking.fill(LABEL, "tri")  # half of a label
    looking.keyboard.press("Escape")
    assert looking.input_value(LABEL) == "star"
    assert asked(looking) == before


def test_evidence_for_a_label_and_against_another(looking):
    looking.locator(".labels button").nth(1).click()
    settle(looking)
    second = looking.locator(".labels .name").nth(1).inner_text()
    assert asked(looking)["method"] == "evidence"
    looking.fill("[name=against]", "star")
    settle(looking)
    answer = served(looking, address(looking))
    assert (answer["label"], answer["against"]) == (second, "star")
    assert looking.locator("#saying").inner_text() == f"Red patches speak for “{second}”, blue ones for “star”."
    turn(looking, "Inside")
    looking.locator(".receipt .logit th", has_text=f"“{second}” − “star”").wait_for()
    turn(looking, "Answer")
    looking.fill("[name=label]", "star")  # a label is never compared with itself
    settle(looking)
    assert "against" not in asked(looking)
