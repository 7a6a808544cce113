import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.scoring import Scoring, scores

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


@given(logits, st.sampled_from(["softmax", "sigmoid"]), st.sampled_from([0.5, 1.0, 3.0]))
def test_the_best_is_the_first_of_the_ranking(z, kind, temperature):
    z = z.astype(np.float32)
    judge = scoring(len(z), kind, temperature)
    (first,) = judge.rank(z, top_k=1)
    assert judge.best(z) == (first.index, pytest.approx(first.score, rel=1e-5))


def test_known_values():
    assert scores(np.log(np.array([1.0, 3.0])), "softmax").tolist() == pytest.approx([0.25, 0.75])
    assert scores(np.array([0.0, np.log(3)]), "sigmoid").tolist() == pytest.approx([0.5, 0.75])


def scoring(classes: int, kind: str = "softmax", temperature: float = 1.0) -> Scoring:
    return Scoring(labels=tuple("abcdefghijklmnopqrst"[:classes]), kind=kind, temperature=temperature)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.integers(1, 25))
def test_the_best_come_first_and_equal_labels_in_the_order_of_the_model(z, top_k):
    ranked = scoring(len(z), "sigmoid").rank(np.array(z, dtype=np.float32), top_k=top_k)
    assert [p.index for p in ranked] == sorted(range(len(z)), key=lambda i: (-z[i], i))[:top_k]
    assert [p.label for p in ranked] == ["abcdefghijklmnopqrst"[p.index] for p in ranked]
    assert [p.score for p in ranked] == pytest.approx([1 / (1 + np.exp(-z[p.index])) for p in ranked])


@pytest.mark.parametrize(("kind", "reached"), [("sigmoid", [1, 2, 0]), ("softmax", [1, 2])])
def test_a_threshold_gives_every_label_that_reaches_it(kind, reached):
    z, four = np.array([0.0, 3.0, 2.5, -4.0]), scoring(4, kind)
    assert [p.index for p in four.rank(z, top_k=None, threshold=0.3)] == reached
    assert [p.index for p in four.rank(z, top_k=1, threshold=0.3)] == reached[:1]
    assert four.rank(z, top_k=None, threshold=1.0) == []
    assert len(four.rank(z, top_k=None)) == 4
    assert len(four.rank(z, top_k=None, threshold=four.scores(z)[2])) == 2  # a score equal to it reaches it


@given(logits, st.floats(0.1, 10))
def test_a_temperature_divides_logits_and_changes_no_rank(z, t):
    assert scores(z, "sigmoid", t) == pytest.approx(scores(z / t, "sigmoid"))
    warm = scoring(len(z), temperature=t)
    assert warm.scores(z) == pytest.approx(scores(z / t, "softmax"))
    assert [p.index for p in warm.rank(z, top_k=None)] == [p.index for p in scoring(len(z)).rank(z, top_k=None)]


@given(logits)
def test_predictions_of_classes_are_those_of_the_ranking(z):
    ranked = scoring(len(z)).rank(z, top_k=3)
    assert scoring(len(z)).predictions(scores(z, "softmax"), [p.index for p in ranked]) == ranked
    # A model without a head predicts nothing.
    assert scoring(0).rank(np.zeros(0, np.float32), top_k=5) == []
