"""POST /embed, and what a model without a head answers."""

from collections.abc import Iterator
from io import BytesIO

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from tests.catalogue.case import encode

NPY = {"Accept": "application/x-npy"}


def lossless(seed: int = 0) -> bytes:
    return encode(Image.fromarray(np.random.default_rng(seed).integers(0, 256, (70, 90, 3), dtype=np.uint8)))


def test_the_answer_has_the_image_and_on_request_its_maps(client, star):
    (result,) = client.post("/embed", content=star).json()["results"]
    assert result.keys() == {"embedding", "familiarity", "image"}
    assert result["image"] == {"width": 320, "height": 240, "format": "JPEG"}
    (result,) = client.post("/embed?attention=true", content=star).json()["results"]
    assert client.get(result["attention"]).headers["content-type"] == "image/png"
    assert client.get(f"/attention/{result['id']}/report").json()["label"] == "star"


def test_normalized_embeddings_have_length_1(client, star):
    raw, unit = (
        np.array(client.post(f"/embed?normalize={wanted}", content=star).json()["results"][0]["embedding"])
        for wanted in ("false", "true")
    )
    assert np.linalg.norm(unit) == pytest.approx(1, abs=1e-6)
    assert unit == pytest.approx(raw / np.linalg.norm(raw), abs=1e-6)
    assert np.linalg.norm(raw) > 2


def test_numpy_gets_one_row_for_each_image(client, star):
    files = [("image", star), ("image", lossless()), ("image", lossless(seed=1))]
    listed = client.post("/embed", files=files).json()["results"]
    rows = np.load(BytesIO(client.post("/embed", files=files, headers=NPY).content))
    assert (rows.dtype, rows.shape) == (np.float32, (3, 128))
    expected = np.array([result["embedding"] for result in listed], np.float32)
    assert np.abs(rows - expected).max() <= 1e-5 * np.abs(expected).max()  # batches may differ


def array(answer) -> np.ndarray:
    assert answer.status_code == 200, answer.text
    return np.load(BytesIO(answer.content))


def test_tokens_come_as_one_array_and_the_same_for_an_image_that_was_kept(client, star):
    files = [("image", star), ("image", lossless())]
    embedded = array(client.post("/embed", files=files, headers=NPY))
    tokens = array(client.post("/embed?tokens=all", files=files))
    assert (tokens.dtype, tokens.shape) == (np.float32, (2, 65, 128))
    assert tokens[:, 0] == pytest.approx(embedded, rel=1e-5, abs=1e-5)  # the head reads the class token
    patches = array(client.post("/embed?tokens=patches&dtype=float16", files=files))
    assert (patches.dtype, patches.shape) == (np.float16, (2, 8, 8, 128))
    assert patches == pytest.approx(tokens[:, 1:].reshape(patches.shape), abs=0.01)
    unit = array(client.post("/embed?tokens=patches&normalize=true", files=files))
    assert np.linalg.norm(unit, axis=-1) == pytest.approx(1, abs=1e-5)
    kept = client.post("/embed?attention=true", content=star).json()["results"][0]["attention"]
    answer = client.get(f"{kept}/tokens?tokens=all")
    assert array(answer) == pytest.approx(tokens[:1], rel=1e-5, abs=1e-5)
    assert client.get(f"{kept}/tokens?tokens=all", headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304


@pytest.mark.parametrize(
    ("query", "accept", "status"),
    [
        ("tokens=patches", "application/json", 406),
        ("tokens=patches&layer=3", "*/*", 422),  # the bundle was exported without layers
        ("layer=3", "*/*", 422),
        ("tokens=all&attention=true", "*/*", 422),
    ],
)
def test_tokens_are_refused_as_json_and_of_other_layers(client, star, query, accept, status):
    assert client.post(f"/embed?{query}", content=star, headers={"Accept": accept}).status_code == status


def test_a_bad_image_takes_its_place_in_json_and_refuses_an_array(client, star):
    files = [("image", star), ("image", b"hello")]
    good, bad = client.post("/embed", files=files).json()["results"]
    assert ("embedding" in good, bad["error"]["status"]) == (True, 415)
    answer = client.post("/embed", files=files, headers=NPY)
    assert (answer.status_code, answer.json()["detail"]) == (415, "1 of the 2 images could be used.")
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/images/1"]


@pytest.fixture(scope="module")
def headless(serve, headless_bundle) -> Iterator[TestClient]:
    with serve(bundle=headless_bundle) as client:
        yield client


@pytest.fixture(scope="module")
def result(headless):
    """Of an image whose maps are kept."""
    return headless.post("/embed?attention=true", content=lossless()).json()["results"][0]


def test_without_a_head_there_are_embeddings_and_maps(headless, result):
    assert len(result["embedding"]) == headless.get("/model").json()["manifest"]["features"] == 32
    for query in ("", "?method=rollout", "?layer=0&head=1&overlay=true&colorbar=true", "/wall", "?format=json"):
        assert headless.get(result["attention"] + query).status_code == 200, query
    report = headless.get(result["attention"] + "/report").json()
    assert (report["label"], report["predictions"], report["heads"]["contribution"]) == (None, [], None)
    assert report["lens"] is None
    assert np.array(report["heads"]["entropy"]).shape == (2, 2)
    assert headless.get(result["attention"] + "?label=0").status_code == 422


def test_without_a_head_the_open_inference_protocol_has_the_embedding(headless):
    name = headless.get("/model").json()["name"]
    (output,) = headless.get(f"/v2/models/{name}").json()["outputs"]
    assert output == {"name": "embedding", "datatype": "FP32", "shape": [-1, 32]}
    pixels = {"name": "images", "datatype": "UINT8", "shape": [1, 24, 40, 3], "data": [0] * 24 * 40 * 3}
    answer = headless.post(f"/v2/models/{name}/infer", json={"inputs": [pixels]})
    assert [len(output["data"]) for output in answer.json()["outputs"]] == [32]


NEEDS_CLASSES = (
    "POST /", "POST /classify", "GET {map}?method=evidence", "GET {map}?method=measured", "GET {map}/report?label=0",
    "POST {map}/verify", "POST {map}/cover",
)  # fmt: skip


@pytest.mark.parametrize("call", NEEDS_CLASSES)
def test_what_needs_classes_is_refused_without_a_head(headless, result, call):
    content = b"" if "{map}" in call else lossless()
    answer = headless.request(*call.format(map=result["attention"]).split(), content=content)
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:vit-serve:problem:no-classes")
