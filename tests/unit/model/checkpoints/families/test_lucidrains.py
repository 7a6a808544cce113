"""model/checkpoints/families/lucidrains.py: what the golden files cannot show."""

import pytest

from model.checkpoints.load import describe_checkpoint
from tests.support.altered import GOLDEN


@pytest.mark.parametrize(
    ("case", "class_token", "pool"), [("1.26.11-mean", False, "mean_all"), ("1.9.2-mean", True, "cls")]
)
def test_without_rows_for_a_class_token_the_tokens_are_averaged(case, class_token, pool):
    stated = {"heads": "3", "mean": "0.5,0.5,0.5", "std": "0.5,0.5,0.5"}
    config = describe_checkpoint(GOLDEN / f"vit-pytorch-{case}/checkpoint.pt", overrides=stated).config
    assert (config.class_token, config.pool) == (class_token, pool)
