"""model/checkpoints/score.py: softmax or sigmoid, in every family."""

import pytest

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint
from tests.golden.test_checkpoints import overrides_of
from tests.unit.model.checkpoints.test_labels import FAMILIES, GOLDEN, stated


@pytest.mark.parametrize("case", FAMILIES)
def test_the_score_can_be_chosen_in_every_family(tmp_path, case):
    path = FAMILIES[case](tmp_path, 7)
    assert describe_checkpoint(path, overrides=stated(case)).score == "softmax"
    chosen = describe_checkpoint(path, overrides={**stated(case), "score": "sigmoid"})
    assert (chosen.score, chosen.origins["score"]) == ("sigmoid", "set by hand")


@pytest.mark.parametrize("case", FAMILIES)
def test_the_classes_of_googles_imagenet_21k_are_scored_alike_in_every_family(tmp_path, case):
    description = describe_checkpoint(FAMILIES[case](tmp_path, 21843), overrides=stated(case))
    assert description.score == "sigmoid"
    assert "sigmoid_xent" in description.origins["score"]


def test_a_single_class_is_a_sigmoid(tmp_path):
    assert describe_checkpoint(FAMILIES["google-vit-jax"](tmp_path, 1)).score == "sigmoid"


def test_another_score_is_refused():
    case = GOLDEN / "deit"
    with pytest.raises(CheckpointError, match="--set score=tanh: it is softmax or sigmoid"):
        describe_checkpoint(case / "checkpoint.pth", overrides={**overrides_of(case), "score": "tanh"})
