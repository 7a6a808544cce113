"""app/inference/familiarity.py: the share of held-out images that are as unlike, or more."""

import numpy as np
import pytest

from app.bundle import HeldOut
from app.errors import UnfamiliarImage
from app.inference.familiarity import Familiarity

KNOWN = Familiarity(held_out=HeldOut(unlike=(-1.0, 0.0, 1.0, 1.0), offsets={1: 2.0}))


def outputs(unlike: float, *, label: int | None) -> dict[str, np.ndarray]:
    logits = {} if label is None else {"logits": np.eye(3, dtype=np.float32)[label]}
    return {"unlike": np.array([unlike], np.float32), **logits}


@pytest.mark.parametrize(("unlike", "share"), [(-2, 1), (-1, 1), (-0.5, 0.8), (1, 0.6), (1.1, 0.2), (np.inf, 0.2)])
def test_it_is_the_share_of_those_that_are_as_unlike_less_the_offset_of_the_label(unlike, share):
    assert KNOWN.of(outputs(unlike, label=None)) == pytest.approx(share)
    assert KNOWN.of(outputs(unlike, label=0)) == pytest.approx(share)
    assert KNOWN.of(outputs(unlike + 2, label=1)) == pytest.approx(share)


def test_below_the_least_it_is_refused():
    assert KNOWN.of(outputs(1, label=0), least=0.6) == 0.6
    with pytest.raises(UnfamiliarImage, match=r"its familiarity is 0\.6, and 0\.7 is the least\.$"):
        KNOWN.of(outputs(1, label=0), least=0.7)
