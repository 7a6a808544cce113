"""export/pictures/similarity.py: how alike positions are, each in its place."""

from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

from export.pictures.similarity import cosine_similarity, positions
from model.config import RopeConfig
from tests.support.toy import toy_checkpoint


def planted(table: torch.Tensor):
    model = toy_checkpoint().model
    model.pos_embed.data = torch.zeros_like(model.pos_embed)
    model.pos_embed.data[0, :, : table.shape[1]] = table
    return positions(model)


def test_positions_that_have_nothing_in_common_are_like_themselves_alone():
    found = planted(torch.eye(15) * torch.arange(1, 16))
    assert found.numbers["grid"] == (3, 5)
    assert found.numbers["similarity"] == np.eye(15).tolist()
    assert found.numbers["patches"] == [(row, column) for row in range(3) for column in range(5)]


def test_rows_and_columns_are_not_mixed_up():
    """Each row has a vector of its own; the pictures of the patches of a row show that row."""
    found = planted(torch.eye(3).repeat_interleave(5, dim=0))
    picture = np.asarray(Image.open(BytesIO(found.png))).astype(int)
    yellow, teal = (253, 231, 36), (32, 144, 140)
    zoom, left, top = 900 // 25, 28 + 62, 92
    for row, column in found.numbers["patches"]:
        x, y = left + column * (5 * zoom + 6) + zoom // 2, top + row * (3 * zoom + 6) + zoom // 2
        for r in range(3):
            expected = yellow if r == row else teal
            assert np.abs(picture[y + r * zoom, x : x + 5 * zoom : zoom] - expected).max() <= 3, (row, column, r)


def test_similarity_is_the_cosine_and_an_embedding_of_zeros_is_like_none():
    table = np.random.default_rng(0).normal(size=(6, 9))
    lengths = np.linalg.norm(table, axis=1)
    assert cosine_similarity(table) == pytest.approx(table @ table.T / np.outer(lengths, lengths))
    assert cosine_similarity(np.array([[0.0, 0.0], [1.0, 2.0]])).tolist() == [[0, 0], [0, pytest.approx(1)]]


@pytest.mark.parametrize("kind", ["learned_2d", "sincos2d"])
def test_other_kinds_of_positions_are_tables_too(kind):
    model = toy_checkpoint(positions=kind).model
    found = positions(model)
    table = model.positions()[0].detach().numpy()
    assert np.array(found.numbers["similarity"]) == pytest.approx(cosine_similarity(table), abs=1e-4)


@pytest.mark.parametrize("kind", ["centered", "learned"])
def test_rotary_positions_are_compared_by_their_angles(kind):
    model = toy_checkpoint(positions="none", registers=1, rope=RopeConfig(kind=kind)).model
    found = positions(model)
    assert found.title == "Similarity of rotary positions"
    angles = []
    for block in model.blocks:
        cos, sin = (table.detach().reshape(-1, 17, 8) for table in block.attn.rope.tables())  # 2 tokens, 15 patches
        angles.append(torch.atan2(sin, cos)[:, 2:])
    apart = torch.cat(angles).unsqueeze(1) - torch.cat(angles).unsqueeze(2)  # (L * H, N, N, d/2)
    assert np.array(found.numbers["similarity"]) == pytest.approx(apart.cos().mean((0, 3)).numpy(), abs=1e-4)


def test_learned_positions_are_shown_before_rotary_ones_and_without_any_there_is_no_picture():
    assert positions(toy_checkpoint(rope=RopeConfig()).model).title == "Similarity of position embeddings"
    assert positions(toy_checkpoint(positions="none").model) is None


def test_of_a_large_grid_some_patches_are_shown():
    model = toy_checkpoint(image_size=(37 * 8, 3 * 8)).model
    found = positions(model)
    rows = [row for row, column in found.numbers["patches"] if column == 0]
    assert rows == list(range(1, 37, 3))
    assert np.shape(found.numbers["similarity"]) == (12 * 3, 37 * 3)
    pairs = zip(found.numbers["similarity"], found.numbers["patches"], strict=True)
    assert [of_patch[row * 3 + column] for of_patch, (row, column) in pairs] == [1] * 36
