"""A measured map of what makes an image like another."""

from types import SimpleNamespace

import numpy as np
import pytest

from app.inference.scoring import Scoring
from app.maps.choice import Choice
from app.maps.measurement import Measurement

GRID, LIT = (4, 5), 7
MANIFEST = SimpleNamespace(tokens=SimpleNamespace(grid=GRID), explains={"embedding": (2,)}, labels=())


class OfOnePatch:
    """An image whose embedding has the other's direction only where one patch is seen."""

    async def run(self, pixels, covered, read, *, fills, deadline):
        return [read({"embedding": np.array([3, 0 if row[LIT] else 4], np.float32)}) for row in covered]


@pytest.mark.parametrize("sign", [1, -1])
async def test_the_patch_that_makes_the_cosine_is_found_in_its_size(sign):
    measurement = Measurement(
        occlusion=OfOnePatch(), manifest=MANIFEST, scoring=Scoring(labels=(), kind="softmax", temperature=1.0)
    )
    choice = Choice(method="measured", passes=256, like="another", against="a third")
    direction = sign * np.array([[0, 1]], np.float32)
    (shown,) = await measurement.maps(np.zeros((8, 10, 3), np.uint8), choice, [direction])
    values = sign * shown.values.ravel()
    assert values.argmax() == LIT
    assert values[LIT] == pytest.approx(0.8, abs=0.1)
    assert (shown.chosen.like, shown.chosen.against) == ("another", "a third")
    assert "the cosine similarity with another minus that with a third" in shown.chosen.recipe
