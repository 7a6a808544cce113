"""The page for other bundles: without a head, with labels of one text or that are numbers, with a text tower, with
known images.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.bundle import load_bundle
from app.maps.judgement import FILE, FILLS, Begin, JudgedMap, Judgement
from tests.browser.stage import address, asked, link, served, settle, turn
from tests.golden.test_checkpoints import FOLDER
from tests.support.familiar import strange_bundle
from tests.support.server import running

OF_CLASSES = "#labels [value=evidence] [value=positive_evidence] #cover-part #receipt-part #lens-part #verify-part"


@pytest.fixture
def bundle(bundle_with, headless_bundle, text_bundle, tmp_path, request):
    return {
        "backbone": lambda: headless_bundle,
        "labels of one text": lambda: bundle_with(labels=["crane"] * 12),
        "labels that are numbers": lambda: bundle_with(labels=[str(index + 1) for index in range(12)]),
        "texts": lambda: text_bundle(FOLDER / "huggingface-clip"),
        "judged": lambda: judged_bundle(bundle_with()),
        "knows nothing like an image": lambda: strange_bundle(tmp_path, known=50),
    }[request.param]()


@pytest.fixture
def url(bundle) -> Iterator[str]:
    with running(bundle) as server:
        yield server.url


def of(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("bundle", [name], indirect=True)


@of("backbone")
def test_a_backbone_shows_maps_and_no_part_that_needs_labels(looking, visit):
    assert looking.get_by_role("tab").all_inner_texts() == ["Compare", "Map", "Inside", "Model"]
    looking.locator("#embedding-said", has_text="32 numbers").wait_for()
    turn(looking, "Map")
    assert asked(looking)["method"] == "class_token"
    assert looking.locator("#map").is_visible()
    turn(looking, "Inside")
    looking.locator("#heads table").first.wait_for()
    assert looking.locator("#wall-part").is_visible()
    for part in OF_CLASSES.split():
        assert not looking.locator(part).is_visible(), part
    page = visit(link(looking).replace("inside", "what-if"))
    settle(page)
    assert (page.locator("#ask-part").is_visible(), page.locator("#labels").is_visible()) == (True, False)


@of("labels of one text")
def test_labels_of_one_text_are_told_apart_by_their_index_wherever_they_stand(looking):
    names = looking.locator(".labels .name").all_inner_texts()
    id = looking.locator(".queue .chosen").get_attribute("data-id")
    indices = [one["index"] for one in served(looking, f"/attention/{id}/report")["predictions"]]
    assert names == [f"crane ({index})" for index in indices]
    looking.locator(".labels button").nth(1).click()
    looking.fill("[name=against]", names[2])
    settle(looking)
    assert (asked(looking)["label"], asked(looking)["against"]) == (str(indices[1]), str(indices[2]))
    turn(looking, "Inside")
    looking.locator(".receipt .logit th", has_text=f"“{names[1]}” − “{names[2]}”").wait_for()
    looking.locator(".lens").wait_for()
    assert sorted(looking.locator(".lens tbody th").all_inner_texts()) == sorted(names)
    turn(looking, "What if")
    looking.get_by_role("button", name="Top 10 %", exact=True).click()
    looking.locator("#outcome table").wait_for()
    assert looking.locator("#outcome .followed span").all_inner_texts() == [names[1]] * 2


@of("labels that are numbers")
def test_a_label_that_is_the_index_of_another_is_the_one_that_is_explained(looking, visit):
    names = looking.locator(".labels .name").all_inner_texts()
    for place, name in enumerate(names[:2]):
        looking.locator(".labels button").nth(place).click()
        settle(looking)
        assert served(looking, address(looking))["label"] == name
        assert looking.locator(".labels [aria-pressed=true] .name").all_inner_texts() == [name]
    looking.fill("[name=label]", names[2])
    looking.fill("[name=against]", names[3])
    for page in (looking, visit(link(looking))):
        settle(page)
        answer = served(page, address(page))
        assert (answer["label"], answer["against"]) == (names[2], names[3])


@of("texts")
def test_labels_that_are_typed_have_scores_and_evidence_in_the_next_image_too(looking, visit):
    template, texts = "a photo of {}", ["a red hat", "newt", "a dog on a mat"]
    turn(looking, "Map")  # this bundle has no labels of its own
    evidence = looking.get_by_role("radio", name="Evidence", exact=True)
    assert not evidence.is_visible()
    looking.fill("#phrases [name=labels]", ", ".join([*texts, texts[0]]))
    rows = looking.locator("#named li")
    rows.nth(2).wait_for()
    sent = {
        "params": {"labels": ",".join(texts), "prompt": template},
        "data": Path("app/page/samples/star.jpg").read_bytes(),
    }
    answer = looking.request.post(f"{looking.url.split('#')[0]}classify", **sent).json()["results"][0]["predictions"]
    assert rows.locator(".name").all_inner_texts() == [one["label"] for one in answer]
    shares = [float(text.split()[0]) for text in rows.locator(".score").all_inner_texts()]
    assert shares == pytest.approx([100 * one["score"] for one in answer], abs=0.06)
    settle(looking)
    assert (asked(looking)["label"], asked(looking)["prompt"]) == (answer[0]["label"], template)
    assert evidence.is_checked()
    assert evidence.is_visible()
    second = answer[1]["label"]
    rows.nth(1).locator("button").click()
    looking.locator("#saying", has_text=f"Red patches speak for “{second}”").wait_for()
    assert looking.locator(".labels [aria-pressed=true] .name").all_inner_texts() == [second]
    looking.set_input_files("#file", "app/page/samples/heart.jpg")
    looking.locator(".queue .chosen", has_text="heart.jpg").wait_for()
    settle(looking)
    for page in (looking, visit(link(looking))):
        settle(page)
        assert (asked(page)["label"], asked(page)["prompt"]) == (second, template)


@of("texts")
def test_labels_that_are_typed_name_all_images_with_their_maps_and_are_in_the_table(looking):
    looking.set_input_files("#file", "app/page/samples/heart.jpg")
    looking.locator(".queue .chosen", has_text="heart.jpg").wait_for()
    turn(looking, "All 2")
    for texts in (["a red hat", "newt"], ["one label alone"]):
        looking.fill("#phrases [name=labels]", ", ".join(texts))
        for place in range(2):
            looking.locator("#grid b", has_text=re.compile("|".join(texts))).nth(place).wait_for()
        looking.locator("#grid canvas").nth(1).wait_for()
    assert looking.locator("[name=only] option").all_inner_texts() == ["all labels", "one label alone (2)"]
    with looking.expect_download() as started:
        looking.click("#take-csv")
    rows = list(csv.DictReader(Path(started.value.path()).read_text().splitlines()))
    assert [(row["image"], row["label"]) for row in rows] == [
        ("star.jpg", "one label alone"),
        ("heart.jpg", "one label alone"),
    ]


@of("knows nothing like an image")
def test_an_unfamiliar_image_is_called_so_above_its_label_also_when_the_person_comes_back_to_it(looking):
    warning, label = looking.locator("#unfamiliar"), looking.locator(".labels .name").first
    said = warning.inner_text()
    assert said.startswith("This image is unlike the 50 images that the model was shown: it is less familiar than 98 %")
    assert warning.bounding_box()["y"] < label.bounding_box()["y"]
    assert link(looking)
    looking.set_input_files("#file", "app/page/samples/heart.jpg")
    looking.locator(".queue .chosen", has_text="heart.jpg").wait_for()
    assert link(looking)
    looking.go_back()
    looking.locator(".queue .chosen", has_text="star.jpg").wait_for()
    assert warning.inner_text() == said


SAYS = "On 40 of your images measured was the most faithful, and class token (mean of layers) about as much."


def judged_bundle(bundle: Path) -> Path:
    areas = dict.fromkeys(FILLS, 0.5)
    best = JudgedMap(
        title="measured", method="measured", passes=64, deletion=areas, insertion=areas,
        faithfulness=1, behind=0, error=0,
    )  # fmt: skip
    other = {"title": "class token (mean of layers)", "method": "class_token", "layer": "mean", "passes": 0}
    next_best = best.model_copy(update=other | {"behind": 0.1, "error": 0.1})
    judgement = Judgement(
        digest=load_bundle(bundle).digest,
        says=SAYS,
        begin=Begin(method="class_token", layer="mean"),
        images=40,
        steps=6,
        maps=(best, next_best),
    )
    (bundle / FILE).write_text(judgement.model_dump_json())
    return bundle


@of("judged")
def test_it_begins_with_the_map_that_was_judged_the_most_faithful_and_says_so(looking):
    assert looking.locator("#judged").inner_text() == SAYS
    assert (asked(looking)["method"], asked(looking)["layer"]) == ("class_token", "mean")
    assert looking.locator("#layer [value=mean]").is_checked()
    looking.check("[value=rollout]")
    settle(looking)
    assert asked(looking)["method"] == "rollout"
