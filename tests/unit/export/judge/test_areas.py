"""export/judge/areas.py on a planted model, which adds up the patches that it sees."""

import asyncio

import numpy as np
import pytest

from app.maps.faithfulness import Faithfulness
from app.maps.judgement import FILLS
from export.judge.areas import STEPS, areas

PLANTED = np.random.default_rng(0).permutation(20).reshape(4, 5).astype(np.float32)
RANDOM = np.random.default_rng(1).random((4, 5), dtype=np.float32)
DULLED = {"mean": 1.0, "blur": 0.5}  # how much of a patch its fill takes away


def judged(maps):
    """The areas, and by fill what was covered to find them."""
    asked = {}

    async def scores(covered, fill):
        assert fill not in asked
        asked[fill] = covered
        return (1 - DULLED[fill] * covered) @ PLANTED.ravel() / PLANTED.sum()

    return asyncio.run(areas(maps, scores)), asked


def test_the_planted_map_is_the_most_faithful_and_its_reverse_the_least():
    found, _ = judged([PLANTED, -PLANTED, RANDOM])
    deletion, insertion = found[..., 0], found[..., 1]
    assert (deletion[0] < deletion[2]).all()
    assert (deletion[2] < deletion[1]).all()
    assert (insertion[0] > insertion[2]).all()
    assert insertion[0] == pytest.approx(deletion[1])  # the same order from its other end


def test_they_are_those_of_verify_and_no_image_is_run_twice():
    maps = [PLANTED, RANDOM, RANDOM]
    found, asked = judged(maps)
    assert [*asked] == [*FILLS]
    for fill, covered in asked.items():
        assert len(np.unique(covered, axis=0)) == len(covered)
        for values, of_map in zip(maps, found[:, FILLS.index(fill)], strict=True):
            alone = Faithfulness.of(values, steps=STEPS, random_orders=1, seed=b"")
            scores = (1 - DULLED[fill] * alone.covered) @ PLANTED.ravel().astype(np.float64) / PLANTED.sum()
            deletion, insertion = alone.curves(scores)
            assert of_map == pytest.approx([deletion.area, insertion.area])
