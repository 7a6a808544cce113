"""Labels that a person types, against transformers' own zero-shot numbers. The text towers run in transformers."""

import itertools
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from app.bundle import load_bundle
from app.images.preprocess import preprocess
from export.command import main
from export.image_spec import image_spec
from export.reference import normalised
from lab.golden.peers.huggingface_clip import LABELS, PROMPTS
from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from tests.golden.test_checkpoints import FOLDER
from tests.support.engines import engine_of

CASES = sorted(path.parent for path in FOLDER.rglob("labels.txt"))
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@each_case
def test_logits_and_scores_are_those_of_transformers(case):
    """Logits from its pixels, also with several prompts, averaged as in CLIP's notebook; scores from the picture,
    through the service's preprocessing.
    """
    expected, labels = np.load(case / "expected.npz"), str(case / "labels.txt")
    checkpoint, prompted = (load_checkpoint(case, labels=labels, prompts=prompts) for prompts in ((), PROMPTS))
    crop, _ = preprocess(Image.fromarray(expected["picture"]), image_spec(checkpoint.preprocessing))
    pixels = torch.from_numpy(expected["pixels"])[None]
    with torch.inference_mode():
        logits, averaged = checkpoint.model(pixels)[0], prompted.model(pixels)[0]
        answer = checkpoint.model(normalised(np.stack([crop]), checkpoint))[0]
    assert logits.numpy() == pytest.approx(expected["beside_texts"], abs=1e-4)
    assert averaged.numpy() == pytest.approx(expected["beside_prompts"], abs=1e-4)
    assert np.abs(averaged.numpy() - expected["beside_texts"]).max() > 1e-3  # the prompts count
    assert np.ptp(expected["beside_texts"]) > 0.01  # else the comparison would say little
    answer = answer.softmax(-1) if checkpoint.score == "softmax" else answer.sigmoid()
    assert answer.numpy() == pytest.approx(expected["scores"], abs=1e-5)


@each_case
def test_a_folder_without_a_tokeniser_is_refused(case, tmp_path):
    shutil.copytree(case, tmp_path / "untold", ignore=shutil.ignore_patterns("tokenizer*", "spiece.model"))
    with pytest.raises(CheckpointError, match=r"there is no tokeniser \(tokenizer\.json\) beside these weights"):
        load_checkpoint(tmp_path / "untold", labels=str(case / "labels.txt"))


def test_a_text_that_clip_cannot_read_whole_is_refused(tmp_path):
    (tmp_path / "long.txt").write_text("cat\n" + 40 * "mat " + "\n")
    with pytest.raises(CheckpointError, match=r'reads at most 32 tokens, and "This is a photo of mat .*" has more'):
        load_checkpoint(FOLDER / "huggingface-clip", labels=str(tmp_path / "long.txt"))


def test_many_labels_are_read_in_batches(tmp_path):
    """Where a batch ends, and how long its longest text is, changes nothing."""
    names = [" ".join(letters) for letters in itertools.permutations("catdo", 4)]
    (tmp_path / "many.txt").write_text("\n".join(names))
    (tmp_path / "few.txt").write_text("\n".join(names[-2:]))
    clip, files = FOLDER / "huggingface-clip", (tmp_path / "many.txt", tmp_path / "few.txt")
    many, few = (load_checkpoint(clip, labels=str(file)) for file in files)
    assert len(many.labels) == 120
    torch.testing.assert_close(many.model.head.weight[-2:], few.model.head.weight)


def test_a_bundle_has_the_head_of_several_prompts(tmp_path, capsys):
    case = FOLDER / "huggingface-siglip"
    expected = np.load(case / "expected.npz")
    out, prompts = tmp_path / "out", [part for prompt in PROMPTS for part in ("--prompt", prompt)]
    main(["--checkpoint", str(case), "--labels", str(case / "labels.txt"), *prompts, "--out", str(out)])
    assert "Labels: labels.txt, with the text tower\n" in capsys.readouterr().out
    manifest = load_bundle(out).manifest
    assert (manifest.labels, manifest.prompts) == (LABELS, PROMPTS)
    assert manifest.labels_from == "labels.txt, with the text tower"
    crop, _ = preprocess(Image.fromarray(expected["picture"]), manifest.image)
    assert engine_of(out).run("classify", [crop])["logits"][0] == pytest.approx(expected["beside_prompts"], abs=1e-4)


@each_case
def test_labels_that_come_with_a_request_have_the_scores_of_transformers(case, text_bundle, serve, encode):
    """From a text's letters on, by the tower and the tokeniser of the bundle; and evidence, with the bias of SigLIP."""
    expected = np.load(case / "expected.npz")
    manifest = load_bundle(text_bundle(case)).manifest
    with serve(bundle=text_bundle(case), max_batch=1) as client:
        query = {"labels": ",".join(LABELS)}
        answer = client.post("/classify", params=query, content=encode(Image.fromarray(expected["picture"])))
        (result,) = answer.json()["results"]
        score_of = {prediction["label"]: prediction["score"] for prediction in result["predictions"]}
        assert [score_of[label] for label in LABELS] == pytest.approx(expected["scores"].tolist(), abs=1e-5)
        for place, label in enumerate(LABELS):
            params = {"method": "evidence", "label": label, "format": "json"}
            receipt = client.get(result["attention"], params=params).json()["receipt"]
            assert receipt["logit"] == pytest.approx(float(expected["beside_texts"][place]), abs=1e-4)
            assert abs(receipt["rounding"]) < 1e-4 * max(map(abs, receipt.values()))
    assert manifest.text.parity <= 1e-5
