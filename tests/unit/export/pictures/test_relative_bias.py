"""export/pictures/relative_bias.py: a bias stands where the patch lies that it is for."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

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


def test_a_planted_bias_lights_its_tile():
    model = toy_checkpoint(relative_bias=True).model
    for block in model.blocks:
        block.attn.relative_position_bias_table.data.zero_()
    for index in range(len(model.blocks[1].attn.relative_position_index)):
        row, column = divmod(index - 1, 5)
        if index and row < 2 and column < 3:  # of every patch, the one below and two to the right
            entry = model.blocks[1].attn.relative_position_index[index, 1 + (row + 1) * 5 + column + 2]
            model.blocks[1].attn.relative_position_bias_table.data[entry] = 1
    found = relative_bias(model)
    assert np.argwhere(np.array(found.numbers["bias"])).tolist() == [[1, 2 + 1, 4 + 2]]
    picture = np.asarray(Image.open(BytesIO(found.png))).astype(int)
    zoom = round(112 / 9)
    left, top = 28 + (9 * zoom + 6), 92
    yellow = (np.abs(picture[:, : left + 9 * zoom] - (253, 231, 36)).max(axis=-1) <= 2)[top : top + 5 * zoom]
    rows, columns = np.nonzero(yellow)
    assert (rows.min(), rows.max() + 1) == (3 * zoom, 4 * zoom)
    assert (columns.min() - left, columns.max() + 1 - left) == (6 * zoom, 7 * zoom)


def test_a_model_without_has_no_picture():
    assert relative_bias(toy_checkpoint().model) is None


def test_a_bias_that_was_never_trained_is_drawn():
    model = toy_checkpoint(relative_bias=True).model
    for block in model.blocks:
        block.attn.relative_position_bias_table.data.zero_()
    assert not np.any(relative_bias(model).numbers["bias"])
