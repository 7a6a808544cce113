"""model/checkpoints/texts.py: OpenCLIP's numbers, and refusals. The export compares transformers' towers itself."""

import shutil

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from tests.support.altered import GOLDEN


@pytest.fixture
def with_tokeniser(tmp_path):
    """A copy of a folder of OpenCLIP's with a tokeniser of a few words."""

    def copy(case: str):
        folder = shutil.copytree(GOLDEN / case, tmp_path / case)
        tokeniser = Tokenizer(models.WordLevel({"[begin]": 30, "[end]": 31, "[other]": 1, "it": 2}, "[other]"))
        tokeniser.pre_tokenizer = pre_tokenizers.Whitespace()
        ends = [("[begin]", 30), ("[end]", 31)]
        tokeniser.post_processor = processors.TemplateProcessing(single="[begin] $A [end]", special_tokens=ends)
        tokeniser.save(str(folder / "tokenizer.json"))
        return folder

    return copy


@pytest.mark.parametrize("case", ["openclip-quickgelu", "openclip-average"])
def test_vectors_are_those_of_open_clip(case, with_tokeniser):
    texts = load_checkpoint(with_tokeniser(case), text=True).texts
    expected = np.load(GOLDEN / case / "expected.npz")
    with torch.inference_mode():
        vectors = texts.tower(torch.from_numpy(expected["text_ids"]))
    assert vectors.numpy() == pytest.approx(expected["texts"], abs=1e-5)
    assert texts.tokeniser.encode("it's").ids == [30, 2, 1, 1, 31]


def test_a_checkpoint_without_a_text_tower_is_refused():
    with pytest.raises(CheckpointError, match="--text needs a CLIP"):
        load_checkpoint(GOLDEN / "huggingface-vit", text=True)


def test_openclips_files_without_a_tokeniser_are_refused():
    with pytest.raises(CheckpointError, match=r"there is no tokeniser \(tokenizer\.json\) beside these weights"):
        load_checkpoint(GOLDEN / "openclip-quickgelu", text=True)
