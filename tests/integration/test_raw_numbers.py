"""Maps over HTTP against the attentions that transformers gave for the same image: raw numbers are the network's."""

from io import BytesIO
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from app.bundle import load_bundle
from app.images.preprocess import preprocess
from export.image_spec import image_spec
from export.reference import reference
from tests.golden.test_checkpoints import FOLDER, load

TOLERANCE = 1e-5  # of the largest number of a map
CASES = ("huggingface-deit", "huggingface-ijepa")  # with tokens before the patches, and without


@pytest.fixture(scope="module", params=CASES)
def served(request, golden_bundle, serve, encode):
    """What the service and the library say about one image: `(fetch, wall, expected, prefix)`.

    The image is a PNG, and the network's pixels are those of the library (tests/golden/test_checkpoints.py), so all
    that differs is the arithmetic. Only the library's attentions are in `expected`, never this project's.
    """
    case = FOLDER / request.param
    golden, checkpoint = np.load(case / "expected.npz"), load(case)
    bundle = golden_bundle(case)
    manifest = load_bundle(bundle).manifest
    picture = Image.fromarray(golden["picture"])
    pixels, _ = preprocess(picture, image_spec(checkpoint.preprocessing))
    classes = golden["logits"].argsort()[::-1][: min(5, len(golden["logits"]))].copy()
    attentions = torch.from_numpy(golden["attentions"]).double()[None]
    with pytest.MonkeyPatch.context() as patch:
        for block, matrix in zip(checkpoint.model.blocks, attentions.unbind(1), strict=True):
            patch.setattr(block, "attention", lambda tokens, given=matrix: given)
        checkpoint.model.double()
        expected = {name: array[0] for name, array in reference(checkpoint, np.stack([pixels]), classes[None]).items()}
    with serve(bundle=bundle, max_batch=1) as client:
        (result,) = client.post("/classify", content=encode(picture)).json()["results"]

        def fetch(**asked: Any) -> np.ndarray:
            """The patches of a map, in the same numbers as JSON and as npy."""
            numbers = client.get(result["attention"], params={**asked, "format": "json"}).json()
            array = np.load(BytesIO(client.get(result["attention"], params={**asked, "format": "npy"}).content))
            assert array.dtype == np.float32
            assert array.ravel().tolist() == numbers["values"]
            assert (numbers["min"], numbers["max"]) == (array.min(), array.max())
            return array.ravel()

        wall = np.load(BytesIO(client.get(f"{result['attention']}/wall?format=npy").content))
        yield fetch, wall, expected, len(manifest.tokens.prefix)


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= TOLERANCE * np.abs(expected).max()


def test_every_head_of_every_layer(served):
    fetch, wall, expected, prefix = served
    rows = expected["attention"][..., prefix:]
    for layer, head in np.ndindex(rows.shape[:2]):
        assert_close(fetch(layer=layer, head=head), rows[layer, head])
        assert (wall[layer, head].ravel() == fetch(layer=layer, head=head)).all()


def test_rollout(served):
    fetch, _, expected, prefix = served
    assert_close(fetch(method="rollout"), expected["rollout"][prefix:])


def test_evidence_of_every_label(served):
    fetch, _, expected, prefix = served
    for index, evidence in zip(expected["classes"], expected["evidence"][..., prefix:], strict=True):
        asked = {"method": "evidence", "label": int(index)}
        assert_close(fetch(**asked), evidence.sum(axis=0))
        assert_close(fetch(**asked, layer="mean"), evidence.mean(axis=0))
        positive = np.maximum(evidence, 0).sum(axis=0) * expected["rollout"][prefix:]
        assert_close(fetch(method="positive_evidence", label=int(index)), positive)
        for layer, of_layer in enumerate(evidence):
            assert_close(fetch(**asked, layer=layer), of_layer)
