"""app/maps/choice.py, attention.py and evidence.py: which numbers a request gets."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from app.bundle import load_bundle
from app.errors import InvalidParameter
from app.maps.attention import choose
from app.maps.attention_map import AttentionMap
from app.maps.choice import Choice, check_choice, classes_for
from app.maps.heads import every_head
from app.maps.labels import find_class
from app.maps.record import Maps
from tests.support.records import make_maps

LAYERS, HEADS, TOKENS = 6, 4, 65
MANIFEST = load_bundle(Path("app/demo")).manifest


def random_maps() -> Maps:
    """With evidence for labels 10, 3 and 7, of which the parts are what they add up to, but for 0.5."""
    rng = np.random.default_rng(0)
    evidence = rng.normal(size=(3, LAYERS, TOKENS)).astype(np.float32)
    rest = rng.normal(size=(3, 2)).astype(np.float32)
    classes, logits = np.array([10, 3, 7]), rng.normal(size=len(MANIFEST.labels)).astype(np.float32)
    logits[classes] = evidence.sum((1, 2)) + rest.sum(1) + np.array([0.5, 0, 0], np.float32)
    return make_maps(
        attention=rng.dirichlet(np.ones(TOKENS), (LAYERS, HEADS)).astype(np.float32),
        rollout=rng.dirichlet(np.ones(TOKENS)).astype(np.float32),
        evidence=evidence,
        evidence_rest=rest,
        logits=logits,
        classes=classes,
    )


MAPS = random_maps()
ROWS = MAPS.attention


def agreed(evidence: np.ndarray) -> np.ndarray:
    """What positive evidence shows of evidence, whose last axis are all tokens or the patches."""
    return np.maximum(evidence, 0) * MAPS.rollout[-evidence.shape[-1] :]


BY_METHOD = pytest.mark.parametrize(("method", "part"), [("evidence", np.asarray), ("positive_evidence", agreed)])


def chosen(method: str = "class_token", **choice: str) -> AttentionMap:
    return choose(MAPS, MANIFEST, Choice(method=method, **choice))


def row(method: str = "class_token", **choice: str) -> np.ndarray:
    return chosen(method, **choice).values.ravel()


@pytest.mark.parametrize(
    ("asked", "layer", "expected"),
    [
        ({}, 5, ROWS[5].mean(0)),
        ({"layer": "2", "head": "3"}, 2, ROWS[2, 3]),
        ({"layer": "-6"}, 0, ROWS[0].mean(0)),
        ({"layer": "1", "head": "max"}, 1, ROWS[1].max(0)),
        ({"layer": "1", "head": "min"}, 1, ROWS[1].min(0)),
        ({"layer": "mean", "head": "mean"}, "mean", ROWS.mean((0, 1))),
        ({"layer": "mean", "head": "3"}, "mean", ROWS[:, 3].mean(0)),
        ({"layer": "mean", "head": "max"}, "mean", ROWS.max(1).mean(0)),  # heads of each layer first
        ({"layer": "mean", "head": "min"}, "mean", ROWS.min(1).mean(0)),
    ],
)
def test_attention_is_of_a_layer_and_a_head_and_nothing_of_a_row_is_lost(asked, layer, expected):
    found = chosen(**asked)
    assert found.chosen.layer == layer
    assert found.values == pytest.approx(expected[1:].reshape(8, 8))
    assert found.masses == {"class": pytest.approx(expected[0]), "distillation": 0, "register": 0}


def test_rollout_has_neither_layer_nor_head_and_says_so():
    rollout = chosen("rollout", layer="1", head="2")
    assert (rollout.chosen.layer, rollout.chosen.head) == ("all", "mean")
    assert (rollout.values == MAPS.rollout[1:].reshape(8, 8)).all()


def test_its_siblings_are_every_head_of_every_layer():
    siblings = chosen(layer="1", head="2").siblings
    assert (siblings == MAPS.attention[..., 1:]).all()
    assert (every_head(MAPS, MANIFEST).reshape(LAYERS, HEADS, -1) == siblings).all()


LIKELY = (10, 3, 7, 1, 2)  # as POST answered
LAYERS_REFUSED = ("6", "-7", "99", "x", "", "1.5", "9" * 30, "max", "sum", "٣" * 12)
HEADS_REFUSED = product(("class_token", "rollout", "evidence"), ("4", "-1", "x", "", "median"))
LABELS_REFUSED = product(("label", "against"), ("12", "99", "-1", "", "Star", "٣", "1.0", "9" * 30))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        *(({"layer": layer}, "0 to 5") for layer in LAYERS_REFUSED),
        ({"method": "evidence", "layer": "x"}, "0 to 5"),
        *(({"method": method, "head": head}, "0 to 3") for method, head in HEADS_REFUSED),
        *(({"method": "evidence", name: label}, "0 to 11") for name, label in LABELS_REFUSED),
        *(({"method": method, "label": "3"}, "evidence") for method in ("class_token", "rollout")),  # it knows none
        ({"against": "star"}, "need method=evidence"),
    ],
)
def test_what_is_not_there_is_refused_before_maps_are_made_and_with_what_is(asked, said):
    choice = Choice(**asked)
    with pytest.raises(InvalidParameter, match=said):
        check_choice(choice, MANIFEST) or classes_for(choice, MANIFEST.labels, LIKELY)
    with pytest.raises(InvalidParameter, match=said):
        choose(MAPS, MANIFEST, choice)


@pytest.mark.parametrize(
    ("asked", "classes"),
    [
        ({}, LIKELY),
        ({"label": "2", "against": "crescent"}, LIKELY),  # one run is for all labels of the answer
        ({"label": "5"}, (10, 3, 7, 1, 5)),
        ({"against": "5"}, (10, 3, 7, 1, 5)),
        ({"label": "5", "against": "5"}, (10, 3, 7, 1, 5)),
        ({"label": "5", "against": "0"}, (10, 3, 7, 0, 5)),
        ({"label": "0", "against": "5"}, (10, 3, 7, 0, 5)),
        ({"label": "2", "against": "5"}, (2, 10, 3, 7, 5)),
    ],
)
def test_classes_to_explain_are_those_of_the_answer_unless_others_are_named(asked, classes):
    assert classes_for(Choice(method="evidence", **asked), MANIFEST.labels, LIKELY) == classes


NAMES = ("cat", "crane", "dog", "crane", "crane", "0")
TEXTS = (None, *dict.fromkeys(NAMES), "1", "3", "4", "5")


@pytest.mark.parametrize("likely", [(2, 3), (2, 0), (4, 1), (0, 4), (5, 2)])
def test_a_label_leads_to_one_class_before_and_after_the_run(likely):
    """Of equal names to the most likely. A name goes before an index."""

    def meant(text: str | None) -> int:
        if text not in NAMES:
            return likely[0] if text is None else int(text)
        equal = [index for index, name in enumerate(NAMES) if name == text]
        return next((index for index in likely if index in equal), equal[0])

    for label, against in product(TEXTS, TEXTS):
        classes = classes_for(Choice(method="evidence", label=label, against=against), NAMES, likely)
        assert (len(classes), len(set(classes))) == (2, 2)
        maps = make_maps(classes=np.array(classes))
        assert classes[find_class(maps, NAMES, label)] == meant(label), (label, against)
        if against is not None:
            assert classes[find_class(maps, NAMES, against)] == meant(against), (label, against)


@BY_METHOD
def test_evidence_is_for_the_likeliest_label_over_all_layers(method, part):
    """What a layer takes away is dropped before layers are summed."""
    evidence, expected = chosen(method), part(MAPS.evidence[0]).sum(0)
    facts = evidence.chosen
    assert (facts.method, facts.label, facts.against, facts.layer, facts.head) == (method, "star", None, "sum", "sum")
    assert facts.index == 10
    positive = method == "positive_evidence"
    assert ("where it is positive" in facts.recipe, evidence.signed) == (positive, not positive)
    assert (evidence.receipt is None) == positive
    assert evidence.values.ravel() == pytest.approx(expected[1:], abs=1e-5)
    assert evidence.masses["class"] == pytest.approx(expected[0], abs=1e-5)


@BY_METHOD
@pytest.mark.parametrize(
    ("layer", "of_layers"), [("2", lambda e: e[2]), ("-1", lambda e: e[5]), ("mean", lambda e: e.mean(0))]
)
def test_evidence_of_a_layer(method, part, layer, of_layers):
    assert row(method, layer=layer) == pytest.approx(of_layers(part(MAPS.evidence[0, :, 1:])), abs=1e-5)


@BY_METHOD
def test_why_one_and_not_the_other_is_the_difference(method, part):
    difference = chosen(method, label="10", against="7", layer="1")
    layers = part(MAPS.evidence[0] - MAPS.evidence[2])[:, 1:]
    assert (difference.values.ravel() == layers[1]).all()
    assert (difference.siblings == np.concatenate([layers, layers.sum(0, keepdims=True)])).all()
    assert (difference.chosen.label, difference.chosen.against) == (MANIFEST.labels[10], MANIFEST.labels[7])


@BY_METHOD
def test_siblings_of_evidence_are_all_layers_and_their_sum_for_all_labels(method, part):
    siblings = chosen(method, label="7").siblings
    assert (siblings == chosen(method, layer="3").siblings).all()
    assert (siblings[:, :-1] == part(MAPS.evidence[..., 1:])).all()
    assert (siblings[2, -1] == row(method, label="7")).all()


@pytest.mark.parametrize("layer", [{"layer": "0"}, {}])
def test_the_receipt_adds_up_and_shows_what_is_left(layer):
    receipt = chosen("evidence", **layer).receipt
    assert receipt.patches == pytest.approx(MAPS.evidence[0, :, 1:].sum(), rel=1e-4)
    assert receipt.prefix == pytest.approx(MAPS.evidence[0, :, 0].sum(), rel=1e-4)
    assert (receipt.mlps, receipt.constants) == pytest.approx(MAPS.evidence_rest[0].tolist())
    assert receipt.rounding == pytest.approx(0.5, abs=1e-4)
    *parts, logit = receipt.model_dump(exclude_none=True).values()
    assert sum(parts) == pytest.approx(logit, abs=1e-9)


def test_the_receipt_of_a_difference_is_the_difference_of_receipts():
    difference = chosen("evidence", label="10", against="7").receipt
    for name, value in difference.model_dump(exclude_none=True).items():
        one, other = (getattr(chosen("evidence", label=label).receipt, name) for label in ("10", "7"))
        assert value == pytest.approx(one - other, abs=1e-4), name
