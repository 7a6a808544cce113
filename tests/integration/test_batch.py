"""app/batch.py: the numbers of the service, without a web framework."""

import pytest

from app.batch import BatchClassifier, BatchFailed
from app.errors import InvalidParameter
from app.settings import DEMO_BUNDLE
from tests.support.pictures import jpeg

BROKEN = jpeg()[:5000]


@pytest.fixture(scope="module")
def classify():
    with BatchClassifier(DEMO_BUNDLE, top_k=3, evidence="star") as batch:
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
        assert row["evidence"] == {name: drawn[name] for name in ("label", "index", "grid", "values", "receipt")}
        assert row["error"] is None
    problem = client.post("/classify", content=BROKEN).json()
    assert bad == {
        **dict.fromkeys(("predictions", "embedding", "evidence")),
        "error": {name: problem[name] for name in ("type", "title", "status", "detail")},
    }


def test_a_model_that_fails_is_no_fault_of_an_image(classify):
    with BatchClassifier(DEMO_BUNDLE) as batch:
        assert "evidence" not in batch([jpeg()])[0]
        batch._backend.runner.fail("The model fails.")
        with pytest.raises(BatchFailed, match="The model fails"):
            batch([jpeg()])


def test_evidence_of_an_unknown_label_is_refused_at_the_start():
    with pytest.raises(InvalidParameter):
        BatchClassifier(DEMO_BUNDLE, evidence="nothing")
