"""GET /attention through the whole app: what was asked for is what comes back."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from app.bundle import load_bundle
from app.images.preprocess import preprocess
from model.shapes import held_out
from tests.support.engines import engine_of


@pytest.fixture(scope="module")
def link(client, star) -> str:
    return client.post("/classify", content=star).json()["results"][0]["attention"]


def test_the_default_is_a_png_of_the_uploads_shape(client, link):
    response = client.get(link, headers={"Range": "bytes=0-0"})  # ranges are ignored
    assert response.status_code == 200
    assert response.headers["content-type"] == "image/png"
    assert Image.open(BytesIO(response.content)).size == (320, 240)


def test_a_large_image_is_drawn_small(client, encode):
    data = encode(Image.new("RGB", (2000, 1000), "teal"), "JPEG")
    answer = client.post("/classify", content=data).json()["results"][0]
    assert answer["image"]["width"] == 2000
    assert Image.open(BytesIO(client.get(answer["attention"]).content)).size == (512, 256)


@pytest.mark.parametrize("method", ["class_token", "rollout"])
def test_the_numbers_are_the_graphs_own(client, encode, method):
    picture = Image.fromarray(next(iter(held_out(1, seed=5))).pixels)
    bundle = load_bundle(client.app.state.services.settings.bundle)
    engine = engine_of(bundle.folder)
    outputs = engine.run("explain", preprocess(picture, bundle.manifest.image)[0][None])
    rows = outputs["attention"][0, 2, 1] if method == "class_token" else outputs["rollout"][0]
    link = client.post("/classify", content=encode(picture)).json()["results"][0]["attention"]
    answer = client.get(link, params={"method": method, "layer": 2, "head": 1, "format": "json"}).json()
    assert answer["values"] == pytest.approx(rows[1:].tolist(), rel=1e-5)
    assert answer["grid"] == [8, 8]
    assert answer["class_token_mass"] == pytest.approx(float(rows[0]), rel=1e-5)


def test_json_says_its_recipe_and_adds_up(client, link):
    answer = client.get(link, params={"layer": "-1", "head": "max"}, headers={"accept": "application/json"}).json()
    assert (answer["method"], answer["layer"], answer["head"]) == ("class_token", 5, "max")
    assert "layer 5" in answer["recipe"]
    assert answer["min"] == min(answer["values"])
    assert answer["max"] == max(answer["values"])
    assert answer["sum"] == pytest.approx(sum(answer["values"]))
    mean = client.get(link, params={"format": "json"}).json()
    assert mean["sum"] + mean["class_token_mass"] + mean["register_mass"] == pytest.approx(1, abs=1e-5)


def test_the_crop_box_is_the_middle_square(client, link):
    answer = client.get(link, params={"format": "json"}).json()
    left, right = (10 * 320 / 85, 74 * 320 / 85)  # columns 10 to 74 of the 85 that the resize leaves
    assert answer["crop_box"] == pytest.approx([left, 0, right, 240])
    assert answer["image"] == [320, 240]


def test_the_limits_are_those_of_the_scale(client, link):
    def limits(**params) -> list[float]:
        return client.get(link, params={"format": "json", **params}).json()["limits"]

    numbers = client.get(link, params={"format": "json"}).json()
    assert limits() == [numbers["min"], numbers["max"]]
    assert limits(scale="absolute") == [0, 1]
    assert limits(scale="shared") == limits(scale="shared", layer=0, head=2)
    assert limits(scale="shared")[1] > limits()[1]
    assert limits(scale="shared", method="rollout") == limits(method="rollout")
    assert limits(scale="absolute", method="evidence") == [-1, 1]
    low, high = limits(method="evidence")
    assert low == -high < 0
    assert limits(scale="shared", method="evidence", layer=0)[1] >= high


def test_numpy_holds_the_same_numbers_as_json(client, link):
    response = client.get(link, params={"format": "npy", "head": 2})
    array = np.load(BytesIO(response.content), allow_pickle=False)
    assert response.headers["content-type"] == "application/x-npy"
    assert array.dtype == np.float32
    assert array.ravel().tolist() == client.get(link, params={"format": "json", "head": 2}).json()["values"]


def test_the_format_parameter_overrules_the_accept_header(client, link):
    response = client.get(link, params={"format": "png"}, headers={"accept": "application/json"})
    assert response.headers["content-type"] == "image/png"


def test_the_id_may_be_a_query_parameter(client, link):
    by_query = client.get("/attention", params={"id": link.rsplit("/", 1)[1], "format": "json"})
    assert by_query.json() == client.get(link, params={"format": "json"}).json()


def test_without_an_id_it_says_how(client):
    response = client.get("/attention")
    assert response.status_code == 200
    assert "/classify" in response.json()["how"]


def test_every_parameter_changes_the_picture(client, link):
    variants = [
        {},
        {"method": "rollout"},
        {"layer": 0},
        {"head": 0},
        {"overlay": "false"},
        {"alpha": 0.9},
        {"colormap": "inferno"},
        {"interpolation": "nearest"},
        {"interpolation": "bicubic"},
        {"scale": "percentile"},
        {"scale": "shared"},
        {"scale": "absolute"},
        {"colorbar": "true"},
        {"threshold": 0.3},
        {"threshold": 0.6},
    ]
    pictures = {client.get(link, params=params).content for params in variants}
    assert len(pictures) == len(variants)


def test_an_etag_saves_drawing_the_same_again(client, link):
    first = client.get(link, params={"layer": 1})
    again = client.get(link, params={"layer": 1}, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = client.get(link, params={"layer": 2}, headers={"if-none-match": first.headers["etag"]})
    assert other.status_code == 200


IDS = [
    "nope",
    "A" * 21,
    "A" * 23,
    "A" * 21 + "%0a",
    "%00",
    "a" * 5000,
    "*",
    "%E2%98%83",
    "a%0d%0aSET%20x",
    "';DROP%20TABLE",
]


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("GET", "/wall"), ("GET", "/report?label=x"), ("POST", "/verify?layer=99"), ("POST", "/cover")],
)
def test_unknown_and_malformed_ids_get_the_same_404_everywhere(client, id, method, path):
    headers = {"X-Request-ID": "same"}  # which the problem repeats
    unknown = client.get("/attention", params={"id": "B" * 22}, headers=headers)
    response = client.request(method, f"/attention/{id}{path}", headers=headers)
    assert (unknown.status_code, unknown.json()["type"]) == (404, "urn:vit-serve:problem:unknown-attention")
    assert (response.status_code, response.content) == (404, unknown.content)


def test_an_id_with_a_slash_is_another_path(client):
    assert client.get("/attention/..%2f..%2fetc").json()["type"] == "urn:vit-serve:problem:not-found"


@pytest.mark.parametrize(
    "query",
    [
        "layer=99",
        "layer=x",
        "head=4",
        "head=-1",
        "method=magic",
        "alpha=2",
        "alpha=nan",
        "colormap=jet",
        "format=gif",
        "scale=log",
        "threshold=0",
        "threshold=1",
        "threshold=nan",
    ],
)
def test_parameters_out_of_range_are_422(client, link, query):
    response = client.get(f"{link}?{query}")
    assert response.status_code == 422
    assert response.json()["type"] == "urn:vit-serve:problem:invalid-parameter"


def test_a_model_with_an_oblong_grid(serve, oblong_bundle, encode):
    with serve(bundle=oblong_bundle) as client:
        answer = client.post("/classify", content=encode(Image.new("RGB", (200, 100), "teal"))).json()["results"][0]
        numbers = client.get(answer["attention"], params={"format": "json"}).json()
        assert numbers["grid"] == [3, 5]
        assert len(numbers["values"]) == 15
        assert client.get(answer["attention"], params={"layer": 2}).status_code == 422
        left, top, right, bottom = numbers["crop_box"]
        assert right - left == pytest.approx(200 * 40 / 48)
        assert bottom - top == pytest.approx(100 * 24 / 32)


def test_evidence_adds_up_to_the_logit(client, link):
    answer = client.get(link, params={"method": "evidence", "format": "json"}).json()
    receipt = answer["receipt"]
    assert (answer["label"], answer["layer"], answer["head"]) == ("star", "sum", "sum")
    assert sum(value for name, value in receipt.items() if name != "logit") == pytest.approx(receipt["logit"])
    assert abs(receipt["rounding"]) < 1e-3 * abs(receipt["logit"])
    assert answer["sum"] == pytest.approx(receipt["patches"], rel=1e-4)
    assert answer["class_token_mass"] == pytest.approx(receipt["prefix"], rel=1e-4)


def test_in_int8_the_receipt_shows_what_rounding_leaves(serve, int8_bundle, star):
    with serve(bundle=int8_bundle, max_batch=1) as client:
        assert client.get("/model").json()["manifest"]["precision"] == "int8"
        (result,) = client.post("/classify", content=star).json()["results"]
        assert result["predictions"][0]["label"] == "star"
        params = {"method": "evidence", "format": "json"}
        receipt = client.get(result["attention"], params=params).json()["receipt"]
        row = client.get(result["attention"], params={"format": "json"}).json()
    assert sum(value for name, value in receipt.items() if name != "logit") == pytest.approx(receipt["logit"])
    assert 1e-5 < abs(receipt["rounding"]) / abs(receipt["logit"]) < 0.1
    assert row["sum"] + row["class_token_mass"] == pytest.approx(1, abs=1e-5)


def test_why_star_and_not_the_second_best(client, star):
    result = client.post("/classify", content=star, params={"top_k": 2}).json()["results"][0]
    first, second = (p["index"] for p in result["predictions"])
    params = {"method": "evidence", "format": "json", "layer": 5}
    one, other = (
        client.get(result["attention"], params={**params, "label": index}).json() for index in (first, second)
    )
    both = client.get(result["attention"], params={**params, "label": first, "against": second}).json()
    assert both["values"] == pytest.approx(
        [a - b for a, b in zip(one["values"], other["values"], strict=True)], abs=1e-5
    )
    assert both["receipt"]["logit"] == pytest.approx(one["receipt"]["logit"] - other["receipt"]["logit"], abs=1e-4)


def test_without_evidence_the_answer_names_no_label(client, link):
    answer = client.get(link, params={"format": "json"}).json()
    assert not {"label", "against", "receipt"} & answer.keys()


def test_positive_evidence_is_a_share_of_nothing_and_says_so(client, link):
    params = {"method": "positive_evidence", "format": "json"}
    answer = client.get(link, params=params).json()
    assert "receipt" not in answer
    assert "where it is positive" in answer["recipe"]
    assert (answer["method"], answer["label"], answer["layer"], answer["head"]) == (
        "positive_evidence",
        "star",
        "sum",
        "sum",
    )
    signed = client.get(link, params=params | {"method": "evidence"}).json()
    assert answer["min"] >= 0
    assert all(p >= max(v, 0) - 1e-6 for p, v in zip(answer["values"], signed["values"], strict=True))
    assert client.get(link, params=params | {"scale": "absolute"}).json()["limits"] == [0, 1]
