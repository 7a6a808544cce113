"""model/checkpoints/families/lucidrains.py: what the golden files cannot show."""

import pytest
import torch

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from tests.support.altered import GOLDEN, altered, stated, with_more

CASE = "vit-pytorch-1.26.11-cls"


@pytest.mark.parametrize(
    ("positions", "grid"),
    [(16, (4, 4)), (16, (2, 8)), (6, (2, 3)), (16, (4, 2)), (16, (3, 4))],  # the last two in a table for a square
)
def test_an_image_takes_the_first_positions_of_the_table(tmp_path, positions, grid):
    """vit.py: x += pos_embedding[:, :(n + 1)]. The README wants a table for the longer side of rectangles."""
    table = torch.randn(1, positions + 1, 24)
    folder = altered(CASE, tmp_path, tensors=with_more({"pos_embedding": table}))
    size = f"{4 * grid[0]},{4 * grid[1]}"  # in patches of 4 pixels
    checkpoint = load_checkpoint(folder, overrides=stated(CASE) | {"image_size": size})
    assert checkpoint.config.grid == grid
    patches = grid[0] * grid[1]
    token = torch.load(GOLDEN / CASE / "checkpoint.pt", weights_only=True)["cls_token"]
    torch.testing.assert_close(checkpoint.model.pos_embed.flatten(0, -2), table[0, 1 : 1 + patches])
    torch.testing.assert_close(checkpoint.model.cls_token.flatten(), token.flatten() + table[0, 0])


def test_a_table_that_is_for_no_square_needs_its_size(tmp_path):
    folder = altered(CASE, tmp_path, tensors=with_more({"pos_embedding": torch.randn(1, 7, 24)}))
    with pytest.raises(CheckpointError, match="7 positions does not fit a square"):
        load_checkpoint(folder, overrides=stated(CASE))
