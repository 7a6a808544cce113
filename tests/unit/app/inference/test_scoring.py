"""app/inference/scoring.py: ranking and scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.scoring import rank, scores

logits = st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=20).map(np.array)


@given(logits)
def test_softmax_is_a_distribution_in_the_order_of_the_logits(z):
    p = scores(z, "softmax")
    assert p.sum() == pytest.approx(1)
    assert (np.diff(p[np.argsort(z)]) >= 0).all()


@given(logits)
def test_sigmoid_scores_each_label_on_its_own(z):
    p = scores(z, "sigmoid")
    assert ((p >= 0) & (p <= 1)).all()
    assert p[0] == pytest.approx(scores(z[:1], "sigmoid")[0])


def test_known_values():
    assert scores(np.log(np.array([1.0, 3.0])), "softmax").tolist() == pytest.approx([0.25, 0.75])
    assert scores(np.array([0.0, np.log(3)]), "sigmoid").tolist() == pytest.approx([0.5, 0.75])


def test_the_best_come_first_with_label_index_and_score():
    ranked = rank(np.array([0.0, 2.0, 1.0]), ("a", "b", "c"), "softmax", 2)
    assert [(p.label, p.index) for p in ranked] == [("b", 1), ("c", 2)]
    assert ranked[0].score > ranked[1].score


def test_no_more_than_there_are():
    assert len(rank(np.zeros(3), ("a", "b", "c"), "softmax", 10**9)) == 3


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.integers(1, 25))
def test_equal_labels_come_in_the_order_of_the_model(z, top_k):
    ranked = rank(np.array(z, dtype=np.float32), tuple(map(str, range(len(z)))), "sigmoid", top_k)
    assert [p.index for p in ranked] == sorted(range(len(z)), key=lambda i: (-z[i], i))[:top_k]


@pytest.mark.parametrize(("kind", "reached"), [("sigmoid", [1, 2, 0]), ("softmax", [1, 2])])
def test_a_threshold_gives_every_label_that_reaches_it(kind, reached):
    z, labels = np.array([0.0, 3.0, 2.5, -4.0]), ("a", "b", "c", "d")
    assert [p.index for p in rank(z, labels, kind, None, 0.3)] == reached
    assert [p.index for p in rank(z, labels, kind, 1, 0.3)] == reached[:1]
    assert rank(z, labels, kind, None, 1.0) == []
    assert len(rank(z, labels, kind, None)) == 4


def test_a_score_equal_to_the_threshold_reaches_it():
    assert [p.index for p in rank(np.array([0.0, -1.0]), ("a", "b"), "sigmoid", None, 0.5)] == [0]


@given(logits, st.floats(0.1, 10))
def test_a_temperature_divides_logits_and_changes_no_rank(z, t):
    assert scores(z, "softmax", t) == pytest.approx(scores(z / t, "softmax"))
    assert scores(z, "sigmoid", t) == pytest.approx(scores(z / t, "sigmoid"))
    labels = tuple(map(str, range(len(z))))
    assert [p.index for p in rank(z, labels, "softmax", None, temperature=t)] == [
        p.index for p in rank(z, labels, "softmax", None)
    ]
