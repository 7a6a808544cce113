"""Small checkpoints made by each family's own library, with that library's pixels and logits, or its embedding.

`lab/golden/make_checkpoints.py` writes them, or says what wrote them, and needs those libraries; the tests need none.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from app.images.preprocess import preprocess
from export.image_spec import image_spec
from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import Checkpoint, Description
from model.checkpoints.load import describe_checkpoint

FOLDER = Path(__file__).parent / "checkpoints"
CASES = sorted(path.parent for path in FOLDER.rglob("expected.npz"))
TOLERANCE = 1e-5  # of the largest number


def load(case: Path) -> Checkpoint:
    return load_checkpoint(path_of(case), overrides=overrides_of(case))


def describe(case: Path) -> Description:
    return describe_checkpoint(path_of(case), overrides=overrides_of(case))


def path_of(case: Path) -> Path:
    """A case is a folder as its hub has it, or holds a lone file named `checkpoint.*`."""
    return next(case.glob("checkpoint.*"), case)


def overrides_of(case: Path) -> dict[str, str]:
    path = case / "overrides.json"
    return json.loads(path.read_text()) if path.exists() else {}


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.relative_to(FOLDER)))
def test_the_familys_own_numbers(case):
    expected = np.load(case / "expected.npz")
    checkpoint = load(case)

    crop, _ = preprocess(Image.fromarray(expected["picture"]), image_spec(checkpoint.preprocessing))
    mean, std = (np.array(v, np.float32) for v in (checkpoint.preprocessing.mean, checkpoint.preprocessing.std))
    pixels = ((crop.astype(np.float32) / 255 - mean) / std).transpose(2, 0, 1)
    assert expected["pixels"].shape == (3, *checkpoint.preprocessing.cropped)
    height, width = checkpoint.preprocessing.size  # the library's network ignores the rest
    theirs = expected["pixels"][:, :height, :width]
    assert pixels.shape == theirs.shape
    assert np.abs(pixels - theirs).max() < 1e-5

    with torch.inference_mode():
        output = checkpoint.model(torch.from_numpy(theirs)[None])[0].numpy()
    answer = expected["logits"] if "logits" in expected else expected["embedding"]
    assert output.shape == answer.shape
    assert np.abs(output - answer).max() <= TOLERANCE * np.abs(answer).max()
    assert len(checkpoint.labels) == (len(output) if "logits" in expected else 0)

    if "attentions" in expected:  # of transformers with its eager attention, or by hooks in timm
        with torch.inference_mode():
            attentions = checkpoint.model.attentions(torch.from_numpy(theirs)[None])[0].numpy()
        assert np.abs(attentions - expected["attentions"]).max() < 1e-5
