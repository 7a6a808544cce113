"""export/known_answer.py: what a replica may differ by, with an engine that is off by a known share."""

import numpy as np
import pytest

from export.known_answer import known_answer
from export.parity import ParityError
from tests.support.toy import toy_checkpoint
from tests.unit.export.test_parity import LOGITS, Off

CHECKPOINT = toy_checkpoint()


def answer(precision, factor):
    return known_answer(CHECKPOINT, Off(CHECKPOINT, factor, lean_alone=False, scaled=LOGITS), precision)


@pytest.mark.parametrize(
    ("precision", "factor", "logits", "attention", "distance"),
    [
        ("fp32", 1.0, 1e-4, 1e-5, 1e-4),
        ("fp32", 1.00005, 2e-4, 1e-5, 1e-4),  # four times what was measured
        ("fp16", 1.01, 0.05, 0.05, 0.05 * 5),
        ("fp16", 1.02, 0.08, 0.05, 0.05 * 5),
        ("int8", 1.01, 0.1, 0.1, 0.1 * 5),
        ("int8", 1.2, 0.8, 0.1, 0.1 * 5),
    ],
)
def test_a_limit_or_four_times_what_export_found_is_allowed(precision, factor, logits, attention, distance):
    tolerance = answer(precision, factor).tolerance
    assert tolerance.logits == pytest.approx(logits, rel=0.02)
    assert (tolerance.attention, tolerance.rollout, tolerance.lens >= attention) == (attention, attention, True)
    assert tolerance.distance == pytest.approx(distance)


@pytest.mark.parametrize("factor", [1.01, np.nan])
def test_fp32_graphs_that_are_off_by_more_than_rounding_are_refused(factor):
    with pytest.raises(ParityError, match=r"the known image: (the logits|the classes|logits)"):
        answer("fp32", factor)
