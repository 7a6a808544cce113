"""Evidence for another image and for vectors: of kept images, of images in the request, with a head and without."""

from collections.abc import Iterator
from io import BytesIO

import numpy as np
import pytest
from fastapi.testclient import TestClient

from tests.support.pictures import jpeg

JSON = {"Accept": "application/json"}
PARTS = ("patches", "prefix", "mlps", "constants", "rounding")
RELATIVE = 1e-5


@pytest.fixture(scope="module", params=["with a head", "without"])
def served(request, client, serve, headless_bundle) -> Iterator[TestClient]:
    if request.param == "with a head":
        yield client
        return
    with serve(bundle=headless_bundle) as headless:
        yield headless


@pytest.fixture(scope="module")
def kept(served) -> list[tuple[str, np.ndarray]]:
    """Of three images, the id and the embedding."""
    files = [("image", jpeg(seed)) for seed in range(3)]
    found = served.post("/embed?attention=true", files=files).json()["results"]
    return [(result["id"], np.array(result["embedding"])) for result in found]


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def whole_of(receipt: dict[str, float], name: str) -> float:
    """The number that the parts add up to, nearly without what is left for rounding."""
    assert receipt.keys() == {*PARTS, name}
    assert abs(receipt["rounding"]) <= RELATIVE * max(map(abs, receipt.values()))
    assert sum(receipt[part] for part in PARTS) == pytest.approx(receipt[name], abs=1e-6)
    return receipt[name]


def test_the_receipt_adds_up_to_the_cosine(served, kept):
    (one, e), (other, like), (third, against) = kept
    path = f"/attention/{one}?method=evidence&like={other}"
    plain = served.get(f"{path}&against=nothing", headers=JSON).json()
    assert whole_of(plain["receipt"], "cosine") == pytest.approx(cosine(e, like), abs=RELATIVE)
    assert (plain["like"], plain["against"], len(plain["values"])) == (other, "nothing", np.prod(plain["grid"]))
    contrast = served.get(f"{path}&against={third}", headers=JSON).json()
    assert whole_of(contrast["receipt"], "cosine") == pytest.approx(cosine(e, like) - cosine(e, against), abs=RELATIVE)
    itself = served.get(f"/attention/{one}?method=evidence&like={one}&against=nothing", headers=JSON).json()
    assert whole_of(itself["receipt"], "cosine") == pytest.approx(1, abs=RELATIVE)
    assert served.get(path).headers["content-type"] == "image/png"


def test_the_mean_is_subtracted_where_the_bundle_knows_one(client, bundle_with, serve):
    mean = np.random.default_rng(0).standard_normal(128)
    with serve(bundle=bundle_with(mean=mean.tolist())) as knowing:
        files = [("image", jpeg(seed)) for seed in range(2)]
        one, other = knowing.post("/embed?attention=true", files=files).json()["results"]
        answer = knowing.get(f"/attention/{one['id']}?method=evidence&like={other['id']}", headers=JSON).json()
    e, like = (np.array(result["embedding"]) for result in (one, other))
    assert answer["against"] == "mean"
    assert whole_of(answer["receipt"], "cosine") == pytest.approx(cosine(e, like) - cosine(e, mean), abs=RELATIVE)


def test_images_in_the_request_get_the_map_of_kept_ones(served, kept):
    (one, _), (other, _), (third, _) = kept
    files = [(name, jpeg(seed)) for seed, name in enumerate(("image", "like", "against"))]
    found = served.post("/attention?method=evidence", files=files, headers=JSON).json()
    expected = served.get(f"/attention/{one}?method=evidence&like={other}&against={third}", headers=JSON).json()
    assert found["receipt"] == pytest.approx(expected["receipt"], abs=1e-6)
    assert found["values"] == pytest.approx(expected["values"], abs=1e-6)
    assert "id" not in found


def test_what_makes_two_images_alike_is_measured_too(served, kept):
    (one, _), (other, _), (third, _) = kept
    path = f"/attention/{one}?method=measured&passes=16&like={other}&against={third}"
    found = served.get(path, headers=JSON).json()
    assert (found["like"], found["against"], found["passes"]) == (other, third, 16)
    files = [(name, jpeg(seed)) for seed, name in enumerate(("image", "like", "against"))]
    again = served.post("/attention?method=measured&passes=16", files=files, headers=JSON).json()
    assert again["values"] == pytest.approx(found["values"], abs=1e-6)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("method=evidence&like=AAAAAAAAAAAAAAAAAAAAAA", 404),
        ("method=rollout&like={other}", 422),
        ("method=evidence&like={other}&label=star", 422),
    ],
)
def test_like_needs_a_kept_image_and_evidence(client, kept, served, query, status):
    (one, _), (other, _), _ = kept
    assert served.get(f"/attention/{one}?{query.format(other=other)}").status_code == status


def test_vectors_get_a_receipt_each_that_adds_up_to_the_inner_product(served, kept):
    (one, e), *_ = kept
    vectors = np.random.default_rng(1).standard_normal((7, len(e))).astype(np.float32)  # more than one run has
    file = BytesIO()
    np.save(file, vectors)
    path = f"/attention/{one}/evidence"
    in_json = served.post(path, json=vectors.tolist()).json()
    assert len(in_json["results"]) == len(vectors)
    for vector, result in zip(vectors, in_json["results"], strict=True):
        assert whole_of(result["receipt"], "product") == pytest.approx(e @ vector, rel=1e-4, abs=1e-4)
    answer = served.post(path, content=file.getvalue(), headers={"Accept": "application/x-npy"})
    maps = np.load(BytesIO(answer.content))
    assert maps.shape == (7, *in_json["grid"])
    assert maps.ravel() == pytest.approx(np.concatenate([r["values"] for r in in_json["results"]]), abs=1e-5)


@pytest.mark.parametrize(
    "body", [b"", b"\x93NUMPY\x01\x00\x05\x00{}   ", b"[[1, 2]]", b"[]", b"[[NaN]]", b"[[1, [2]]]", b'{"a": 1}']
)
@pytest.mark.parametrize("kind", ["application/json", "application/x-npy"])
def test_a_body_without_vectors_of_the_model_is_refused(client, body, kind):
    kept = client.post("/classify", content=jpeg()).json()["results"][0]["attention"]
    assert client.post(f"{kept}/evidence", content=body, headers={"Content-Type": kind}).status_code == 400
