"""Texts in requests, of a bundle with a text tower and of one without."""

import base64
import json

import numpy as np
import pytest
from huggingface_hub import InferenceClient
from PIL import Image

from app.batch import BatchClassifier
from tests.golden.test_checkpoints import FOLDER
from tests.support.server import running

CASE = FOLDER / "huggingface-clip"
LABELS = ("cat", "dog on a mat", "newt")


@pytest.fixture(scope="module")
def expected():
    return np.load(CASE / "expected.npz")


@pytest.fixture(scope="module")
def image(expected, encode) -> bytes:
    return encode(Image.fromarray(expected["picture"]))


@pytest.fixture(scope="module")
def clip(serve, text_bundle):
    with serve(bundle=text_bundle(CASE), max_batch=1) as client:
        yield client


def by_label(predictions) -> list[float]:
    scores = {one["label"]: one["score"] for one in predictions}
    return [scores[label] for label in LABELS]


def test_labels_come_in_a_query_in_json_and_in_a_form(clip, image, expected):
    encoded = base64.b64encode(image).decode()
    answers = [
        clip.post("/classify", params={"labels": ",".join(LABELS)}, content=image),
        clip.post("/classify", json={"inputs": encoded, "labels": LABELS}),
        clip.post("/classify", files={"image": image}, data={"labels": json.dumps(LABELS)}),
    ]
    for answer in answers:
        (result,) = answer.json()["results"]
        assert by_label(result["predictions"]) == pytest.approx(expected["scores"].tolist(), abs=1e-5)


def test_hugging_faces_client_is_answered_unmodified(text_bundle, image, expected):
    with running(engine="onnxruntime", bundle=text_bundle(CASE)) as server:
        hub = InferenceClient(base_url=server.url)
        found = hub.zero_shot_image_classification(image, list(LABELS), hypothesis_template="This is a photo of {}.")
    scores = by_label([{"label": one.label, "score": one.score} for one in found])
    assert scores == pytest.approx(expected["scores"].tolist(), abs=1e-5)


def test_evidence_for_a_phrase_adds_up_to_its_logit(clip, image, expected):
    (result,) = clip.post("/classify", params={"labels": "cat,newt"}, content=image).json()["results"]
    logits = dict(zip(LABELS, expected["beside_texts"].tolist(), strict=True))
    query = {"method": "evidence", "format": "json"}
    for label in LABELS:
        shown = clip.get(result["attention"], params={**query, "label": label}).json()
        assert shown["label"] == label
        assert shown["receipt"]["logit"] == pytest.approx(logits[label], abs=1e-4)
        parts = [part for name, part in shown["receipt"].items() if name != "logit"]
        assert sum(parts) == pytest.approx(shown["receipt"]["logit"], abs=1e-6)
        assert abs(shown["receipt"]["rounding"]) < 1e-4 * max(map(abs, parts))
    among = {**query, "labels": ",".join(LABELS)}
    first, second, _ = sorted(LABELS, key=logits.__getitem__, reverse=True)
    of_body = clip.post("/attention", params=among, content=image).json()
    assert by_label(of_body["predictions"]) == pytest.approx(expected["scores"].tolist(), abs=1e-5)
    for shown in (clip.get(result["attention"], params=among).json(), of_body):
        assert (shown["label"], shown["comparison"]["against"]) == (first, second)
        assert shown["comparison"]["receipt"]["logit"] == pytest.approx(logits[first] - logits[second], abs=1e-4)
    apart = clip.get(result["attention"], params={**query, "label": first, "against": second}).json()
    assert apart["receipt"]["logit"] == pytest.approx(logits[first] - logits[second], abs=1e-4)


def test_a_batch_names_among_labels(text_bundle, image, expected):
    for labels in (LABELS, ", ".join(LABELS)):
        with BatchClassifier(text_bundle(CASE), labels=labels) as classify:
            (row,) = classify([image])
        assert by_label(row["predictions"]) == pytest.approx(expected["scores"].tolist(), abs=1e-5)


def test_embed_gives_vectors_of_texts(clip, image):
    texts = ["This is a photo of cat.", "one, with a comma"]
    results = clip.post("/embed", json={"text": texts}).json()["results"]
    assert [result["text"] for result in results] == texts
    vectors = np.array([result["embedding"] for result in results])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)
    file = clip.post("/embed", params={"text": texts[1]}, headers={"Accept": "application/x-npy"})
    assert file.headers["content-type"] == "application/x-npy"
    assert vectors[1].astype("<f4").tobytes() in file.content
    both = clip.post("/embed", json={"text": "cat", "inputs": base64.b64encode(image).decode()})
    assert both.status_code == 400


def test_openais_client_gets_vectors_of_texts_and_images(clip, image):
    """The bodies are those of openai 3.57, which decodes base64 itself unless it is asked for numbers."""
    text = b'{"model":"clip","input":"cat","encoding_format":"base64"}'
    url = b"data:image/png;base64," + base64.b64encode(image)
    item = b'{"type":"image_url","image_url":{"url":"%b"}}' % url
    mixed = b'{"input":["cat","%b",{"image":"%b"},%b],"model":"clip"}' % (url, url, item)
    sent = {"content-type": "application/json", "authorization": "Bearer none"}
    (one,) = clip.post("/v1/embeddings", content=text, headers=sent).json()["data"]
    several = clip.post("/v1/embeddings", content=mixed, headers=sent).json()
    assert (several["object"], [one["index"] for one in several["data"]]) == ("list", [0, 1, 2, 3])
    first, second, third, fourth = (np.array(one["embedding"]) for one in several["data"])
    assert np.frombuffer(base64.b64decode(one["embedding"]), "<f4") == pytest.approx(first, abs=1e-6)
    assert (second == third).all()
    assert (second == fourth).all()
    embedded = clip.post("/embed?normalize=true", content=image).json()["results"][0]["embedding"]
    assert second == pytest.approx(embedded, abs=1e-6)


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("/classify", {"labels": "cat," + "mat " * 30}, 422),  # more tokens than the tower reads
        ("/classify", {"prompt": "a {}"}, 422),
        ("/attention", {"labels": "cat,newt"}, 422),  # attention is the same for every label
        ("/attention", {"method": "evidence", "prompt": "a {}"}, 422),
        ("/embed", {"text": "cat", "tokens": "patches"}, 422),
        ("/classify", {}, 409),
        ("/", {}, 409),
    ],
)
def test_texts_that_have_no_meaning_and_missing_labels_are_refused(clip, image, path, query, status):
    assert clip.post(path, params=query, content=b"" if path == "/embed" else image).status_code == status


@pytest.mark.parametrize(
    "body",
    [
        {"input": []},
        {"input": [1, 2]},
        {"input": "cat", "dimensions": 3},
        {"input": [{"image": "https://example.org/cat.png"}]},
        {"input": [{"type": "text"}]},
    ],
)
def test_openais_door_refuses_what_it_cannot_do(clip, body):
    assert clip.post("/v1/embeddings", json=body).status_code == 400


def test_a_bundle_without_a_text_tower_refuses_texts(client, star):
    calls = [
        client.post("/classify", params={"labels": "cat,dog"}, content=star),
        client.post("/attention", params={"method": "evidence", "labels": "cat"}, content=star),
        client.post("/embed", json={"text": "cat"}),
        client.post("/v1/embeddings", json={"input": "cat"}),
    ]
    assert [answer.status_code for answer in calls] == [422] * 4
