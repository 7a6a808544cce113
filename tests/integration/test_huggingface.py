"""POST / and /predict, by huggingface_hub's InferenceClient as it is, and images as base64 in JSON."""

import httpx
import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError

from tests.support.processes import PATIENCE_S


@pytest.fixture(scope="module")
def hub(url) -> InferenceClient:
    return InferenceClient(base_url=url)


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
