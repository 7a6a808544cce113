"""model/checkpoints/facts.py: softmax or sigmoid, in every family."""

import pytest

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint
from tests.support.published import google_file, hub_folder, stated, torch_file

FAMILIES = {
    "deit": torch_file("deit", "head"),
    "torchvision-vit": torch_file("torchvision-vit", "heads.head"),
    "vit-pytorch-1.9.2-mean": torch_file("vit-pytorch-1.9.2-mean", "mlp_head"),
    "google-vit-jax": google_file,
    "huggingface-vit": hub_folder("huggingface-vit"),
    "timm-plain": hub_folder("timm-plain"),
}


@pytest.mark.parametrize("case", FAMILIES)
def test_the_classes_of_googles_imagenet_21k_are_scored_alike_in_every_family_unless_told_otherwise(tmp_path, case):
    path, overrides = FAMILIES[case](tmp_path, 21843), stated(case)
    description = describe_checkpoint(path, overrides=overrides)
    assert description.score == "sigmoid"
    assert "sigmoid_xent" in description.origins["score"]
    chosen = describe_checkpoint(path, overrides={**overrides, "score": "softmax"})
    assert (chosen.score, chosen.origins["score"]) == ("softmax", "set by hand")


def test_a_single_class_is_a_sigmoid_and_another_score_is_refused(tmp_path):
    path = google_file(tmp_path, 1)
    assert describe_checkpoint(path).score == "sigmoid"
    with pytest.raises(CheckpointError, match="--set score=tanh: it is softmax or sigmoid"):
        describe_checkpoint(path, overrides={"score": "tanh"})
