"""GET /attention and what lies below it through the whole app: what was asked for is what comes back."""

from io import BytesIO
from threading import Event
from unittest.mock import AsyncMock

import numpy as np
import pytest
from PIL import Image

from model.shapes import LABELS
from tests.support.engines import Watched

LAYERS, HEADS, GRID = 6, 4, (8, 8)


def test_json_says_what_was_drawn_and_where(client, link):
    answer = client.get(link, params={"layer": "-1", "head": "max"}, headers={"accept": "application/json"}).json()
    assert (answer["method"], answer["layer"], answer["head"]) == ("class_token", 5, "max")
    assert "layer 5" in answer["recipe"]
    left, right = (10 * 320 / 85, 74 * 320 / 85)  # columns 10 to 74 of the 85 that the resize leaves
    assert answer["crop_box"] == pytest.approx([left, 0, right, 240])
    assert answer["image"] == [320, 240]


def test_the_id_may_be_a_query_parameter(client, link):
    by_query = client.get("/attention", params={"id": link.rsplit("/", 1)[1], "format": "json"})
    assert by_query.json() == client.get(link, params={"format": "json"}).json()


VARIANTS = {
    "": "method=rollout method=evidence method=positive_evidence method=evidence&label={second} "
    "method=evidence&against={second} layer=0 head=0 overlay=false alpha=0.9 colormap=inferno interpolation=nearest "
    "interpolation=bicubic head=0&scale=min-max scale=percentile scale=shared scale=robust-shared scale=absolute "
    "colorbar=true threshold=0.3 threshold=0.6 fade=false",
    "/wall": "overlay=true overlay=true&alpha=0.9 colormap=magma interpolation=bicubic scale=min-max scale=percentile "
    "colorbar=true",
}


@pytest.mark.parametrize("path", VARIANTS)
def test_every_parameter_changes_the_picture(client, classified, link, path):
    variants = VARIANTS[path].format(second=classified["predictions"][1]["label"])
    answers = [client.get(f"{link}{path}?{query}") for query in ("", *variants.split())]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == len(answers)


@pytest.mark.parametrize(
    ("method", "id", "path"),
    [
        *(("GET", id, "") for id in ("nope", "A" * 21 + "%0a", "%00", "a" * 5000)),
        *(("GET", "nope", path) for path in ("/wall", "/report?label=x")),
        *(("POST", "nope", path) for path in ("/verify?layer=99", "/cover")),
    ],
)
def test_unknown_and_malformed_ids_get_the_same_404_everywhere(client, id, method, path):
    headers = {"X-Request-ID": "same"}  # which the problem repeats
    unknown = client.get("/attention", params={"id": "B" * 22}, headers=headers)
    response = client.request(method, f"/attention/{id}{path}", headers=headers)
    assert (unknown.status_code, unknown.json()["type"]) == (404, "urn:vit-serve:problem:unknown-attention")
    assert (response.status_code, response.content) == (404, unknown.content)


OUT_OF_RANGE = {
    "": "passes=12 passes=66 passes=260 "
    "layer=99 layer=x head=4 head=-1 method=magic alpha=2 alpha=nan colormap=jet format=gif scale=log threshold=0 "
    "threshold=1 threshold=nan",
    "/wall": "colormap=jet alpha=2 scale=log format=gif method=magic",
    "/report": "label=nothing",
    "/verify": "steps=3 steps=65 random_orders=0 random_orders=33 fill=white method=magic layer=99 head=x "
    "label=nothing label=99",
    "/cover": "rest=true patches=1&share=0.1 patches=64 patches=1,,2 patches=-1 share=0 share=1 "
    "share=0.1&random_sets=0 share=0.1&layer=99 share=0.1&label=nothing share=0.1&against=nothing "
    "share=0.1&random_sets=201",
}


@pytest.mark.parametrize("path", OUT_OF_RANGE)
def test_parameters_out_of_range_are_422(client, link, path):
    for query in OUT_OF_RANGE[path].split():
        response = client.request("POST" if path in ("/verify", "/cover") else "GET", f"{link}{path}?{query}")
        assert (response.status_code, response.json()["type"]) == (422, "urn:vit-serve:problem:invalid-parameter"), (
            query
        )


def test_a_click_on_the_hottest_pixel_finds_the_head_with_the_largest_number(client, link):
    link += "/wall"
    geometry = client.get(link, params={"format": "json", "scale": "min-max"}).json()
    assert (geometry["layers"], geometry["heads"], geometry["grid"]) == (LAYERS, HEADS, list(GRID))
    answer = client.get(link, params={"colormap": "gray", "scale": "min-max"})
    assert answer.headers["content-type"] == "image/png"
    picture = Image.open(BytesIO(answer.content)).convert("L")
    assert list(picture.size) == geometry["size"]
    pixels = np.asarray(picture)
    (left, top), (width, height), gap = geometry["origin"], geometry["cell"], geometry["gap"]
    inside = np.zeros(pixels.shape, bool)
    for layer, head in np.ndindex(LAYERS, HEADS):
        x, y = left + head * (width + gap), top + layer * (height + gap)
        inside[y : y + height, x : x + width] = True
    y, x = np.unravel_index(np.where(inside, pixels, 0).argmax(), pixels.shape)
    found = (y - top) // (height + gap), (x - left) // (width + gap)
    numbers = np.load(BytesIO(client.get(link, params={"format": "npy"}).content), allow_pickle=False)
    assert found == np.unravel_index(numbers.argmax(), numbers.shape)[:2]
    assert [geometry["min"], geometry["max"]] == geometry["limits"] == [numbers.min(), numbers.max()]


@pytest.mark.parametrize("call", ["?head=0&", "/wall?"])
def test_numbers_say_what_the_usual_colours_cut_off(client, link, call):
    answer, numbers = (client.get(f"{link}{call}format={kind}") for kind in ("json", "npy"))
    values, said = np.load(BytesIO(numbers.content), allow_pickle=False), answer.json()
    low, high = said["limits"]
    assert (said["scale"], low, said["min"]) == ("robust", values.min(), values.min())
    assert high < said["max"] == values.max()
    assert said["beyond"] == (values > np.float32(high)).sum() > 0


def classify(client, star, **params) -> str:
    return client.post("/classify", content=star, params=params).json()["results"][0]["attention"]


def test_labels_and_maps_of_an_image_never_disagree(client, star, watched):
    """Where the two graphs do, as in int8."""

    def turn(graph, outputs, beside):
        if graph == "explain":
            outputs["logits"] *= -1

    watched.after = turn
    (result,) = client.post("/classify", content=star).json()["results"]
    labels = [prediction["label"] for prediction in result["predictions"]]
    report = client.get(f"{result['attention']}/report").json()
    assert (report["label"], [each["label"] for each in report["predictions"]]) == (labels[0], labels)
    evidence = client.get(result["attention"], params={"method": "evidence", "format": "json"}).json()
    assert evidence["label"] == labels[0]


def test_maps_of_now_are_made_in_the_same_pass(client, star, watched):
    link = classify(client, star, attention="now")
    assert client.get(f"{link}?method=evidence").status_code == 200
    assert watched.runs == [("explain", 1)]


@pytest.mark.parametrize(("text", "kept"), [("1", True), ("no", False), ("now", True)])
def test_attention_is_true_false_or_now(client, star, text, kept):
    (result,) = client.post("/classify", params={"attention": text}, content=star).json()["results"]
    assert ("id" in result) == kept


@pytest.mark.parametrize(
    ("asked", "label", "against"),
    [
        ({"label": "ring", "against": "drop"}, "ring", "drop"),  # two that the answer does not have
        ({"label": "0", "against": "1"}, "arrow", "bolt"),
        ({"against": "drop"}, "star", "drop"),
        ({"label": "drop", "against": "drop"}, "drop", "drop"),
        ({"label": "7"}, LABELS[7], None),
    ],
)
def test_any_label_has_evidence_that_adds_up(client, link, asked, label, against):
    answer = client.get(link, params={"method": "evidence", "format": "json", **asked}).json()
    assert (answer["label"], answer.get("against")) == (label, against)
    assert abs(answer["receipt"]["rounding"]) <= 1e-3 * max(1, *map(abs, answer["receipt"].values()))
    assert answer["sum"] == pytest.approx(answer["receipt"]["patches"], rel=1e-4, abs=1e-5)


def test_maps_that_are_being_made_are_finished_when_the_service_stops(serve, star):
    with serve() as client:
        link, go_on = classify(client, star), Event()
        services = client.app.state.services
        services.model.engine = watched = Watched(services.model.engine, before=lambda graph, images: go_on.wait())
        assert client.get(link, headers={"X-Request-Timeout": "0.05"}).status_code == 503
        keep = services.explainer.store.keep = AsyncMock(return_value=True)
        go_on.set()
    assert ("explain", 1) in watched.runs
    assert keep.await_args.args[0].startswith(link[-22:] + "/")
