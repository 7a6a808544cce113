"""app/inference/known_answer.py on the demo bundle, whose outputs are altered as a faulty session would."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.bundle import load_bundle
from app.inference.known_answer import KnownImage, WrongAnswer, enlarged
from app.settings import DEMO_BUNDLE
from tests.support.engines import engine_of

ANSWER = load_bundle(DEMO_BUNDLE).manifest.known_answer
BATCH = 3
EXPLAINED = ("unlike", "attention", "rollout", "evidence", "evidence_heads", "evidence_rest", "distance", "lens")


@pytest.fixture(scope="module")
def engine():
    return engine_of(DEMO_BUNDLE)


@pytest.fixture
def known() -> KnownImage:
    return KnownImage(ANSWER, (64, 64))


@pytest.fixture
def outputs(engine, known):
    """By graph, the true ones for a batch of three; a test may alter them."""
    return {graph: engine.run(graph, *known.inputs(BATCH)) for graph in ("classify", "explain")}


def check(known, outputs, graph="explain"):
    known.check(graph, outputs[graph], provider="SomeProvider")


def refused(known, outputs, name, graph="explain"):
    with pytest.raises(WrongAnswer, match=f"{name} of the {graph} graph differs"):
        check(known, outputs, graph)


def test_the_true_outputs_are_far_within_the_tolerance(known, outputs):
    for graph in outputs:
        check(known, outputs, graph)
    assert 0 < max(known.largest.values()) < 0.2
    assert known.largest.keys() == {"classify", "explain"}


@pytest.mark.parametrize("graph", ["classify", "explain"])
@pytest.mark.parametrize("wrong", [1.001, np.nan, np.inf])
@pytest.mark.parametrize("row", range(BATCH))
def test_one_logit_of_one_row_is_enough(known, outputs, graph, wrong, row):
    outputs[graph]["logits"][row, 4] *= wrong
    refused(known, outputs, "logits", graph)


def test_the_sentence_says_what_where_and_how_much(known, outputs):
    outputs["classify"]["logits"][1, 0] += 0.01 * np.abs(ANSWER.logits).max()
    sentence = r"on SomeProvider: .* logits of the classify graph .* by 1\.0e-02, and 1\.0e-04 .*\(image 2 of a batch"
    with pytest.raises(WrongAnswer, match=sentence):
        check(known, outputs, "classify")


@pytest.mark.parametrize("name", EXPLAINED)
@pytest.mark.parametrize("wrong", [1.01, np.nan, np.inf])
def test_every_output_is_compared(known, outputs, name, wrong):
    place = (1, *(size - 1 for size in outputs["explain"][name].shape[1:]))
    flat = outputs["explain"][name]
    flat[place] = wrong if np.isfinite(wrong) else flat[place] * wrong
    refused(known, outputs, name.split("_")[0])


def blurred(tokens):
    return (np.roll(tokens, 1, axis=-1) + tokens + np.roll(tokens, -1, axis=-1)) / 3


def transposed(tokens):
    patches = tokens[..., 1:].reshape(*tokens.shape[:-1], 8, 8)
    return np.concatenate([tokens[..., :1], patches.swapaxes(-1, -2).reshape(*tokens.shape[:-1], 64)], axis=-1)


@pytest.mark.parametrize("name", ["attention", "rollout", "evidence"])
@pytest.mark.parametrize(
    "alter",
    [lambda tokens: tokens[..., ::-1], lambda tokens: np.roll(tokens, 1, axis=-1), blurred, transposed],
    ids=["mirrored", "shifted", "blurred", "rows and columns exchanged"],
)
def test_tokens_in_a_wrong_place_are_found_though_their_sum_is_right(known, outputs, name, alter):
    before = outputs["explain"][name]
    outputs["explain"][name] = alter(before)
    assert outputs["explain"][name].sum(-1) == pytest.approx(before.sum(-1), abs=1e-3)
    refused(known, outputs, name)


@pytest.mark.parametrize("name", ["attention", "evidence", "evidence_heads", "distance"])
def test_heads_or_layers_in_a_wrong_place_are_found(known, outputs, name):
    outputs["explain"][name] = outputs["explain"][name][:, :, ::-1]
    refused(known, outputs, name.split("_")[0])


def reordered(outputs, order):
    """The explaining graph's outputs with their classes in another order."""
    for name in ("classes", "evidence", "evidence_heads", "evidence_rest"):
        outputs["explain"][name] = outputs["explain"][name][:, order]
    outputs["explain"]["lens"] = outputs["explain"]["lens"][:, :, order]


def test_classes_that_are_not_the_most_likely_are_found(known, outputs):
    reordered(outputs, [1, 0, 2, 3, 4])
    refused(known, outputs, "logits")


@pytest.mark.parametrize("index", [-1, 5, 12, 2**40])
def test_a_class_that_is_not_among_them_is_found(known, outputs, index):
    outputs["explain"]["classes"][2, 3] = index
    refused(known, outputs, "logits")


def tied(first: int, second: int) -> KnownImage:
    """The known answer with two logits so close together that rounding may exchange them."""
    logits = list(ANSWER.logits)
    logits[second] = logits[first] - 1e-6
    return KnownImage(ANSWER.model_copy(update={"logits": tuple(logits)}), (64, 64))


def test_two_nearly_equal_classes_may_change_places_but_their_numbers_may_not(outputs):
    first, second = ANSWER.classes[:2]
    known = tied(first, second)
    for graph in outputs:
        outputs[graph]["logits"][:, second] = outputs[graph]["logits"][:, first]
    check(known, outputs)
    reordered(outputs, [1, 0, 2, 3, 4])
    check(known, outputs)
    outputs["explain"]["evidence"] = outputs["explain"]["evidence"][:, [1, 0, 2, 3, 4]]
    refused(known, outputs, "evidence")


def test_of_two_nearly_equal_classes_the_last_may_be_another(outputs):
    last, next_one = ANSWER.classes[-1], int(np.argsort(ANSWER.logits)[::-1][len(ANSWER.classes)])
    known = tied(last, next_one)
    outputs["explain"]["logits"][:, next_one] = outputs["explain"]["logits"][:, last]
    outputs["explain"]["classes"][:, -1] = next_one
    outputs["explain"]["evidence"][:, -1] += 5  # of another class, so it is compared with nothing
    check(known, outputs)
    outputs["explain"]["evidence"][0, -1, 0, 0] = np.nan
    refused(known, outputs, "evidence")


@given(have=st.tuples(st.integers(1, 9), st.integers(1, 9)), to=st.tuples(st.integers(1, 40), st.integers(1, 40)))
def test_enlarging_keeps_every_pixel_at_its_place(have, to):
    image = np.arange(3 * have[0] * have[1], dtype=np.uint8).reshape(*have, 3)
    large = enlarged(image, to)
    assert large.shape == (*to, 3)
    for row, column in np.ndindex(*to):
        assert (large[row, column] == image[row * have[0] // to[0], column * have[1] // to[1]]).all()
