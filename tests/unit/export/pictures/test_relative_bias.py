"""export/pictures/relative_bias.py: a bias stands where the patch lies that it is for."""

import numpy as np
import pytest

from export.pictures.relative_bias import biases, relative_bias
from tests.support.toy import toy_checkpoint


@pytest.mark.parametrize("class_token", [True, False])
def test_each_offset_has_the_bias_that_attention_adds(class_token):
    model = toy_checkpoint(relative_bias=True, class_token=class_token, pool="mean").model
    found = biases(model)
    assert found.shape == (2, 5, 9)
    prefix = int(class_token)
    for layer, block in enumerate(model.blocks):
        added = block.attn.bias()[0, :, prefix:, prefix:].mean(dim=0).detach().numpy()
        for asking, read in ((0, 14), (14, 0), (7, 7), (3, 11), (9, 5)):
            y, x = read // 5 - asking // 5, read % 5 - asking % 5
            assert found[layer, 2 + y, 4 + x] == pytest.approx(added[asking, read], abs=1e-6)


def test_a_bias_that_was_never_trained_is_drawn_and_one_that_is_not_there_is_not():
    assert relative_bias(toy_checkpoint().model) is None
    model = toy_checkpoint(relative_bias=True).model
    for block in model.blocks:
        block.attn.relative_position_bias_table.data.zero_()
    assert not np.any(relative_bias(model).numbers["bias"])
