"""POST / and /predict, by huggingface_hub's InferenceClient as it is, and images as base64 in JSON."""

import base64

import httpx
import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError

from tests.support.processes import PATIENCE_S


@pytest.fixture(scope="module")
def hub(url) -> InferenceClient:
    return InferenceClient(base_url=url)


def encoded(image: bytes) -> str:
    return base64.b64encode(image).decode()


def test_bytes_and_files_are_named_as_by_classify(url, hub, star, tmp_path):
    (tmp_path / "star.jpg").write_bytes(star)
    expected = httpx.post(f"{url}/classify", content=star, timeout=PATIENCE_S).json()["results"][0]["predictions"]
    for image in (star, tmp_path / "star.jpg"):
        found = {one.label: one.score for one in hub.image_classification(image)}
        assert found == pytest.approx({one["label"]: one["score"] for one in expected}, abs=1e-6)


def test_the_function_that_makes_scores(hub, star):
    kinds = ("softmax", "sigmoid", "none")
    softmax, sigmoid, logits = (hub.image_classification(star, function_to_apply=kind, top_k=12) for kind in kinds)
    assert sum(one.score for one in softmax) == pytest.approx(1)
    assert [one.label for one in softmax] == [one.label for one in logits]
    for probability, logit in zip(sigmoid, logits, strict=True):
        assert probability.score == pytest.approx(1 / (1 + 2.718281828**-logit.score), abs=1e-6)


def test_errors_reach_the_clients_exception(hub):
    with pytest.raises(HfHubHTTPError, match="This is text, not JPEG"):
        hub.image_classification(b"no image")


@pytest.mark.parametrize("path", ["/", "/classify"])
def test_parameters_stand_in_the_query_or_in_json_or_in_a_form_and_in_one_of_them(client, star, path):
    def given(answer) -> int:
        assert answer.status_code == 200, answer.text
        found = answer.json()
        return len(found if path == "/" else found["results"][0]["predictions"])

    image = {"inputs": encoded(star)}
    body = {**image, "parameters": {"top_k": 2}, "options": {"wait_for_model": True}}
    assert given(client.post(path, json=body)) == given(client.post(path, json={**image, "top_k": 2})) == 2
    assert given(client.post(path, data={"top_k": "2"}, files={"image": star})) == 2
    for nothing in ({}, {"parameters": None}, {"top_k": None}):
        assert given(client.post(f"{path}?top_k=7", json={**image, **nothing})) == 7
    twice = client.post(f"{path}?top_k=7", json=body)
    assert (twice.status_code, twice.json()["detail"]) == (422, "top_k is given 2 times: give it once.")


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"inputs": "http://169.254.169.254/latest"}, 400, "does not fetch addresses"),
        ({"inputs": "%%%"}, 400, "must be base64"),
        ([], 400, "The body must be JSON"),
        ({"inputs": "eA==", "parameters": {"topk": 2}}, 422, "topk is not a parameter of POST /: is top_k meant?"),
        ({"inputs": "eA==", "top_k": True}, 422, "top_k"),
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
