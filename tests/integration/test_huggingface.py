"""POST / and /predict, by huggingface_hub's InferenceClient as it is, and images as base64 in JSON."""

import base64

import httpx
import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError


@pytest.fixture(scope="module")
def door(url) -> InferenceClient:
    return InferenceClient(base_url=url)


def encoded(image: bytes) -> str:
    return base64.b64encode(image).decode()


def test_bytes_and_files_are_named_as_by_classify(url, door, star, tmp_path):
    (tmp_path / "star.jpg").write_bytes(star)
    expected = httpx.post(f"{url}/classify", content=star).json()["results"][0]["predictions"]
    for image in (star, tmp_path / "star.jpg"):
        found = {one.label: one.score for one in door.image_classification(image)}
        assert found == pytest.approx({one["label"]: one["score"] for one in expected}, abs=1e-6)


def test_the_function_that_makes_scores(door, star):
    kinds = ("softmax", "sigmoid", "none")
    softmax, sigmoid, logits = (door.image_classification(star, function_to_apply=kind, top_k=12) for kind in kinds)
    assert sum(one.score for one in softmax) == pytest.approx(1)
    assert [one.label for one in softmax] == [one.label for one in logits]
    for probability, logit in zip(sigmoid, logits, strict=True):
        assert probability.score == pytest.approx(1 / (1 + 2.718281828**-logit.score), abs=1e-6)


def test_errors_reach_the_clients_exception(door):
    with pytest.raises(HfHubHTTPError, match="This is not an image of an accepted type"):
        door.image_classification(b"no image")


@pytest.mark.parametrize("path", ["/", "/predict"])
def test_a_raw_body_or_a_file_of_a_form_is_the_image(client, star, path):
    answer = client.post(f"{path}?top_k=1", content=star)
    assert (answer.status_code, answer.json()[0]["label"]) == (200, "star")
    assert client.post(path, files={"file": star}).json()[0]["label"] == "star"


def test_parameters_of_the_body_override_those_of_the_query(client, star):
    body = {"inputs": encoded(star), "parameters": {"top_k": 2}, "options": {"wait_for_model": True}}
    assert len(client.post("/?top_k=7", json=body).json()) == 2
    for nothing in ({}, {"parameters": None}):
        assert len(client.post("/?top_k=7", json={"inputs": encoded(star), **nothing}).json()) == 7
    (result,) = client.post("/classify?top_k=7", json=body).json()["results"]
    assert len(result["predictions"]) == 2


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"inputs": "http://169.254.169.254/latest"}, 400, "does not fetch addresses"),
        ({"inputs": "%%%"}, 400, "must be base64"),
        ({"inputs": ""}, 422, "The image is empty"),
        ({"inputs": ["eA==", "eA=="]}, 400, "send from 1 to 1"),
        ({"inputs": 7}, 400, "The JSON must be"),
        ([], 400, "The JSON must be"),
        ({"inputs": "eA==", "parameters": {"top_k": 0}}, 422, "top_k"),
        ({"inputs": "eA==", "parameters": {"function_to_apply": "relu"}}, 422, "function_to_apply"),
        ({"inputs": "eA==", "parameters": 7}, 400, "The JSON must be"),
    ],
)
def test_invalid_json_is_refused_with_the_reason(client, body, status, said):
    answer = client.post("/", json=body)
    assert (answer.status_code, said in answer.json()["error"]) == (status, True), answer.text
    assert answer.json()["error"] == answer.json()["detail"]


@pytest.mark.parametrize("member", ["inputs", "image", "images"])
def test_classify_takes_images_in_json_too(client, star, member):
    for images, expected in ((encoded(star), ["star"]), ([encoded(star)] * 2, ["star", "star"])):
        results = client.post("/classify?attention=false", json={member: images}).json()["results"]
        assert [result["predictions"][0]["label"] for result in results] == expected
