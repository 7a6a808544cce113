"""The fields for the two labels offer every label of the model, and find one by what is typed."""

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
    looking.locator(".receipt .logit th", has_text=f"“{UNLIKELY}”").wait_for()
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


def test_what_is_said_of_a_text_is_gone_with_the_next_label_or_image(looking):
    for other in (".labels li:nth-child(2) button", "[data-sample=heart]"):
        looking.fill(LABEL, "zebra")
        looking.keyboard.press("Tab")
        looking.locator("#no-label", has_text="zebra").wait_for()
        looking.click(other)
        looking.locator("#no-label", has_not_text="zebra").wait_for(state="attached")


def test_a_label_that_is_part_of_very_many_others_is_offered_first_and_chosen(page):
    program = """async () => {
        const [{ Classes }, { LabelField }] = await Promise.all(
            ["classes", "label_field"].map((name) => import(`/page/${name}.js`)));
        const labels = [...Array(1100).keys()].map((i) => `X2 of ${i}`).concat("X2");
        document.body.insertAdjacentHTML("beforeend", '<input id="many" list="names"><datalist id="names"></datalist>');
        const [input, chosen] = [document.getElementById("many"), []];
        new LabelField(input, { classes: new Classes(labels), choose: (key) => chosen.push(labels[key]) });
        for (const text of ["x2", "X2"]) {
            input.value = text;
            input.dispatchEvent(new Event("input"));
        }
        return [chosen, input.list.options[0].value, input.list.options.length];
    }"""
    assert page.evaluate(program) == [["X2"], "X2", 1000]


def test_labels_with_one_text_are_told_apart(page):
    program = """import("/page/classes.js").then(({ Classes }) => {
        const classes = new Classes(["crane", "1", "crane"]);
        return [0, 1, 2].map((i) => [classes.name(i), classes.key(i), classes.index(classes.key(i))]);
    })"""
    assert page.evaluate(program) == [["crane (0)", "0", 0], ["1", "1", 1], ["crane (2)", "2", 2]]
