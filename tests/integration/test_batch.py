"""app/batch.py: the numbers of the service, without a web framework."""

import pickle
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.batch import BatchClassifier, BatchFailed
from app.bundle import load_bundle
from app.errors import InvalidParameter
from app.inference.digits import listed
from app.settings import DEMO_BUNDLE
from tests.support.pictures import jpeg

BROKEN = jpeg()[:5000]
VECTORS = np.random.default_rng(0).normal(size=(2, load_bundle(DEMO_BUNDLE).manifest.features)).astype(np.float32)


@pytest.fixture(scope="module")
def classify():
    with BatchClassifier(
        DEMO_BUNDLE, top_k=3, evidence="star", measured=True, passes=16, vectors=VECTORS, tokens="patches"
    ) as batch:
        yield batch


def test_rows_have_the_numbers_of_the_service_bit_for_bit(client, classify):
    images = [jpeg(seed) for seed in range(4)]
    rows = classify([*images[:2], BROKEN, *images[2:]])
    bad = rows.pop(2)
    for image, row in zip(images, rows, strict=True):
        (result,) = client.post("/classify?top_k=3", content=image).json()["results"]
        (embedded,) = client.post("/embed", content=image).json()["results"]
        drawn = client.get(f"{result['attention']}?method=evidence&label=star&format=json").json()
        assert row["predictions"] == result["predictions"]
        assert row["embedding"] == embedded["embedding"]
        assert row["familiarity"] == result["familiarity"]
        assert row["evidence"] == {name: drawn[name] for name in ("label", "index", "grid", "values", "receipt")}
        drawn = client.get(f"{result['attention']}?method=measured&passes=16&format=json").json()
        assert row["measured"] == {name: drawn[name] for name in ("label", "index", "grid", "values", "spread")}
        tokens = client.post("/embed?tokens=patches", content=image)
        assert np.array_equal(row["tokens"][np.newaxis], np.load(BytesIO(tokens.content)))
        shown = client.post(f"{result['attention']}/evidence", json=VECTORS.tolist()).json()["results"]
        vectors = [{name: one[name] for name in ("values", "receipt")} for one in row["vectors"]]
        assert [{**one, "values": listed(one["values"].ravel())} for one in vectors] == shown
        assert row["error"] is None
    problem = client.post("/classify", content=BROKEN).json()
    assert bad == {
        **dict.fromkeys(("predictions", "embedding", "familiarity", "evidence", "measured", "vectors", "tokens")),
        "error": {name: problem[name] for name in ("type", "title", "status", "detail")},
    }


def test_images_are_compared_by_measured_maps_without_a_head(headless_bundle, serve):
    one, other = jpeg(1), jpeg(2)
    with serve(bundle=headless_bundle) as client:
        files = [("image", one), ("like", other)]
        drawn = client.post("/attention?method=measured&passes=16&against=nothing&format=json", files=files).json()
        (embedded,) = client.post("/embed", content=other).json()["results"]
    unit = np.array([embedded["embedding"]]) / np.linalg.norm(embedded["embedding"])
    with BatchClassifier(headless_bundle, measured=True, passes=16, vectors=unit) as classify:
        (row,) = classify([one])
    assert "measured" not in row
    (shown,) = row["vectors"]
    np.testing.assert_allclose(shown["measured"].ravel(), drawn["values"], rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(shown["spread"].ravel(), drawn["spread"], rtol=1e-3, atol=1e-6)


def test_a_missing_image_is_a_row(classify):
    good, missing = classify([jpeg(), None])
    assert (good["error"], missing["predictions"], missing["error"]["detail"]) == (None, None, "The image is missing.")


def test_the_demo_takes_what_the_client_takes():
    path = Path("docs/star.jpg")
    with BatchClassifier(top_k=1) as classify, Image.open(path) as image:
        rows = classify([path.read_bytes(), path, image, np.asarray(image)])
    assert [row["predictions"][0]["label"] for row in rows] == ["star"] * 4


def test_a_classifier_is_used_only_in_the_process_that_made_it_and_until_it_is_closed(
    classify, monkeypatch, in_onnx_runtime
):
    with pytest.raises(TypeError, match="make one in each process"):
        pickle.dumps(classify)
    with monkeypatch.context() as forked:
        forked.setattr("app.batch.os.getpid", lambda: 1)
        with pytest.raises(BatchFailed, match="made in another process: make one here"):
            classify([jpeg()])
    closed = BatchClassifier(DEMO_BUNDLE)
    closed.close()
    with pytest.raises(BatchFailed, match="was closed"):
        closed([jpeg()])


def test_a_model_that_fails_is_no_fault_of_an_image(in_onnx_runtime):
    with BatchClassifier(DEMO_BUNDLE) as batch:
        assert "evidence" not in batch([jpeg()])[0]
        batch._backend.runner.fail("The model fails.")
        with pytest.raises(BatchFailed, match="The model fails"):
            batch([jpeg()])


def test_no_labels_at_all_cannot_be_asked_for():
    with pytest.raises(ValueError, match="top_k has to be at least 1"):
        BatchClassifier(DEMO_BUNDLE, top_k=0)


def test_evidence_of_an_unknown_label_is_refused_at_the_start(in_onnx_runtime):
    with pytest.raises(InvalidParameter):
        BatchClassifier(DEMO_BUNDLE, evidence="nothing")
