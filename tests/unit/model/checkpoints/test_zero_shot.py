"""model/checkpoints/zero_shot.py and texts.py: OpenCLIP's numbers, and what they refuse.

tests/golden/test_zero_shot.py has the numbers of transformers.
"""

import shutil
import sys

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint
from tests.support.altered import GOLDEN

CLIP = GOLDEN / "huggingface-clip"


@pytest.fixture
def labels(tmp_path):
    def write(*names):
        path = tmp_path / "labels.txt"
        path.write_text("\n".join(names))
        return str(path)

    return write


def test_labels_become_the_classes_of_a_cosine_head(labels):
    description = describe_checkpoint(CLIP, labels=labels("cat", "newt"), prompts=("a {}", "the {}"))
    config = description.config
    assert (config.num_classes, config.head, config.head_bias) == (2, "cosine", False)
    assert (description.labels, description.prompts) == (("cat", "newt"), ("a {}", "the {}"))
    assert description.labels_from == "labels.txt, with the text tower"
    assert description.origins["num_classes"].where == "labels.txt"


@pytest.mark.parametrize(
    ("names", "prompts", "message"),
    [
        (("cat", "newt", "cat "), (), "labels.txt has the label cat more than once"),
        (("cat", ""), ("a {}", "a photo"), '--prompt "a photo" has no {} in place of the label'),
        (("cat", "newt"), ("a {{}} of {}",), '--prompt "a {{}} of {}" has doubled braces'),
        (("",), (), "labels.txt has no labels"),
        (("cat",), (), "labels.txt has one label: CLIPModel compares labels, and one alone would always score 1"),
        (None, ("a {}",), "--prompt TEXT needs --labels FILE"),
        ("none", (), "--labels none: CLIPModel has no classes to number, only your labels"),
    ],
)
def test_refusals_are_one_clear_sentence(labels, names, prompts, message):
    with pytest.raises(CheckpointError) as refusal:
        describe_checkpoint(CLIP, labels=labels(*names) if isinstance(names, tuple) else names, prompts=prompts)
    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize("case", ["huggingface-clip-classifier", "huggingface-vit"])
def test_a_model_without_a_text_tower_reads_no_prompts(labels, case):
    with pytest.raises(CheckpointError, match="--prompt: the checkpoint has no text tower"):
        describe_checkpoint(GOLDEN / case, labels=labels(*"abcde"), prompts=("a {}",))


def test_without_transformers_the_refusal_says_how_to_install_it(labels, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(CheckpointError, match="need transformers, which the extra export has"):
        load_checkpoint(CLIP, labels=labels("cat", "newt"))


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
