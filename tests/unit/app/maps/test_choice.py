"""app/maps/choice.py: which numbers a request gets."""

from pathlib import Path

import numpy as np
import pytest

from app.bundle import load_bundle
from app.errors import InvalidParameter
from app.maps.choice import Choice, choose
from app.maps.heads import every_head
from app.maps.record import Record
from tests.support.records import make_maps, make_record

LAYERS, HEADS, TOKENS = 6, 4, 65


@pytest.fixture(scope="module")
def manifest():
    return load_bundle(Path("app/demo")).manifest


@pytest.fixture(scope="module")
def record() -> Record:
    rng = np.random.default_rng(0)
    return make_record(
        maps=make_maps(
            attention=rng.dirichlet(np.ones(TOKENS), (LAYERS, HEADS)).astype(np.float32),
            rollout=rng.dirichlet(np.ones(TOKENS)).astype(np.float32),
        )
    )


def values(record, manifest, method="class_token", layer=None, head="mean"):
    return choose(record, manifest, Choice(method=method, layer=layer, head=head)).values


def test_one_head_of_one_layer(record, manifest):
    expected = record.maps.attention[2, 3, 1:].reshape(8, 8)
    assert (values(record, manifest, layer="2", head="3") == expected).all()


def test_the_last_layer_is_the_default_and_negative_counts_from_the_end(record, manifest):
    assert (values(record, manifest) == values(record, manifest, layer="5")).all()
    assert (values(record, manifest, layer="-6") == values(record, manifest, layer="0")).all()
    assert choose(record, manifest, Choice(method="class_token", layer="-1", head="mean")).chosen.layer == 5


@pytest.mark.parametrize("head", ["mean", "max", "min"])
def test_heads_are_reduced(record, manifest, head):
    expected = getattr(np, head)(record.maps.attention[1], axis=0)[1:].reshape(8, 8)
    assert values(record, manifest, layer="1", head=head) == pytest.approx(expected)


def test_the_mean_over_layers(record, manifest):
    expected = record.maps.attention.mean(axis=(0, 1))[1:].reshape(8, 8)
    assert values(record, manifest, layer="mean") == pytest.approx(expected)


def test_rollout_has_neither_layer_nor_head_and_says_so(record, manifest):
    found = choose(record, manifest, Choice(method="rollout", layer="1", head="2"))
    assert (found.chosen.layer, found.chosen.head) == ("all", "mean")
    assert (found.values == record.maps.rollout[1:].reshape(8, 8)).all()


def test_nothing_of_a_row_is_lost(record, manifest):
    found = choose(record, manifest, Choice(method="class_token", layer="0", head="0"))
    assert found.values.sum() + found.class_token_mass + found.register_mass == pytest.approx(1, abs=1e-6)
    assert found.class_token_mass == pytest.approx(float(record.maps.attention[0, 0, 0]))


def test_its_siblings_are_every_head_of_every_layer(record, manifest):
    found = choose(record, manifest, Choice(method="class_token", layer="1", head="2"))
    assert (found.siblings == record.maps.attention[..., 1:]).all()
    assert (every_head(record, manifest).reshape(LAYERS, HEADS, -1) == found.siblings).all()


@pytest.mark.parametrize("layer", ["6", "-7", "99", "x", "", "1.5", "9" * 30, "max", "٣" * 12])
def test_a_layer_that_is_not_there_is_refused(record, manifest, layer):
    with pytest.raises(InvalidParameter, match="0 to 5"):
        values(record, manifest, layer=layer)


@pytest.mark.parametrize("head", ["4", "-1", "x", "", "median"])
@pytest.mark.parametrize("method", ["class_token", "rollout"])
def test_a_head_that_is_not_there_is_refused(record, manifest, head, method):
    with pytest.raises(InvalidParameter, match="0 to 3"):
        values(record, manifest, method=method, head=head)


@pytest.fixture(scope="module")
def explained() -> Record:
    """Evidence for labels 10, 3 and 7, of which the parts are what they add up to."""
    rng = np.random.default_rng(1)
    evidence = rng.normal(size=(3, LAYERS, TOKENS)).astype(np.float32)
    rest = rng.normal(size=(3, 2)).astype(np.float32)
    logits = evidence.sum((1, 2)) + rest.sum(1) + np.array([0.5, 0, 0], np.float32)
    return make_record(
        maps=make_maps(evidence=evidence, evidence_rest=rest, logits=logits, classes=np.array([10, 3, 7]))
    )


def of_evidence(record, manifest, layer=None, label=None, against=None):
    return choose(record, manifest, Choice(method="evidence", layer=layer, head="mean", label=label, against=against))


def test_evidence_is_for_the_likeliest_label_over_all_layers(explained, manifest):
    found = of_evidence(explained, manifest)
    assert (found.chosen.label, found.chosen.against, found.chosen.layer, found.chosen.head) == (
        "star",
        None,
        "sum",
        "sum",
    )
    assert found.signed
    assert found.values.ravel() == pytest.approx(explained.maps.evidence[0, :, 1:].sum(0), abs=1e-5)
    assert found.class_token_mass == pytest.approx(explained.maps.evidence[0, :, 0].sum(), abs=1e-5)


@pytest.mark.parametrize(("layer", "expected"), [("2", lambda e: e[2]), ("-1", lambda e: e[5]), ("mean", np.mean)])
def test_evidence_of_a_layer(explained, manifest, layer, expected):
    values = of_evidence(explained, manifest, layer=layer).values
    of_layers = explained.maps.evidence[0]
    row = expected(of_layers, axis=0) if layer == "mean" else expected(of_layers)
    assert values.ravel() == pytest.approx(row[1:], abs=1e-5)


@pytest.mark.parametrize("label", ["3", manifest_label := "crescent"])
def test_a_label_may_be_an_index_or_a_name(explained, manifest, label):
    assert manifest.labels[3] == manifest_label
    found = of_evidence(explained, manifest, label=label, layer="0")
    assert (found.values.ravel() == explained.maps.evidence[1, 0, 1:]).all()


def test_why_one_and_not_the_other_is_the_difference(explained, manifest):
    found = of_evidence(explained, manifest, label="10", against="7", layer="1")
    maps = explained.maps
    assert (found.values.ravel() == (maps.evidence[0] - maps.evidence[2])[1, 1:]).all()
    assert found.siblings.shape == (LAYERS + 1, TOKENS - 1)
    assert (found.siblings[1] == found.values.ravel()).all()
    assert found.receipt.logit == pytest.approx(float(maps.logits[0] - maps.logits[2]), rel=1e-5)
    assert (found.chosen.label, found.chosen.against) == (manifest.labels[10], manifest.labels[7])


def test_siblings_of_evidence_are_all_layers_and_their_sum_for_all_labels(explained, manifest):
    one, other = of_evidence(explained, manifest, label="7"), of_evidence(explained, manifest, layer="3")
    assert (one.siblings == other.siblings).all()
    assert (one.siblings[2, -1] == one.values.ravel()).all()
    assert (other.siblings[0, 3] == other.values.ravel()).all()


@pytest.mark.parametrize("layer", ["0", None])
def test_the_receipt_adds_up_and_shows_what_is_left(explained, manifest, layer):
    receipt = of_evidence(explained, manifest, layer=layer).receipt
    maps = explained.maps
    assert receipt.patches == pytest.approx(maps.evidence[0, :, 1:].sum(), rel=1e-4)
    assert receipt.prefix == pytest.approx(maps.evidence[0, :, 0].sum(), rel=1e-4)
    assert (receipt.mlps, receipt.constants) == pytest.approx(maps.evidence_rest[0].tolist())
    assert receipt.rounding == pytest.approx(0.5, abs=1e-4)
    parts = (receipt.patches, receipt.prefix, receipt.mlps, receipt.constants, receipt.rounding)
    assert sum(parts) == pytest.approx(receipt.logit, abs=1e-9)


@pytest.mark.parametrize("label", ["0", "arrow", "99", "-1", "", "Star"])
def test_a_label_that_is_not_kept_is_refused_with_those_that_are(explained, manifest, label):
    with pytest.raises(InvalidParameter, match=r"star \(10\), crescent \(3\)"):
        of_evidence(explained, manifest, label=label)
    with pytest.raises(InvalidParameter):
        of_evidence(explained, manifest, against=label)


@pytest.mark.parametrize("method", ["class_token", "rollout"])
def test_attention_knows_no_label(record, manifest, method):
    with pytest.raises(InvalidParameter, match="evidence"):
        choose(record, manifest, Choice(method=method, layer=None, head="mean", label="3"))


def of_positive(record, manifest, **choice):
    return choose(record, manifest, Choice(method="positive_evidence", **choice))


def test_positive_evidence_drops_what_each_layer_takes_away_before_layers_are_summed(explained, manifest):
    found = of_positive(explained, manifest)
    positive = np.maximum(explained.maps.evidence[0], 0)
    assert found.values.ravel() == pytest.approx(positive[:, 1:].sum(0), abs=1e-5)
    assert found.class_token_mass == pytest.approx(positive[:, 0].sum(), abs=1e-5)
    assert (found.values.ravel() > np.maximum(explained.maps.evidence[0, :, 1:].sum(0), 0)).all()
    assert (found.chosen.method, found.chosen.label, found.chosen.layer) == ("positive_evidence", "star", "sum")
    assert "where it is positive" in found.chosen.recipe


def test_positive_evidence_has_no_sign_and_no_receipt(explained, manifest):
    found = of_positive(explained, manifest)
    assert not found.signed
    assert found.receipt is None


@pytest.mark.parametrize(("layer", "expected"), [("2", lambda e: e[2]), ("mean", lambda e: e.mean(0))])
def test_positive_evidence_of_a_layer(explained, manifest, layer, expected):
    positive = np.maximum(explained.maps.evidence[1, :, 1:], 0)
    assert of_positive(explained, manifest, layer=layer, label="3").values.ravel() == pytest.approx(expected(positive))


def test_positive_evidence_for_one_and_not_the_other_is_the_positive_part_of_the_difference(explained, manifest):
    found = of_positive(explained, manifest, label="10", against="7", layer="1")
    evidence = explained.maps.evidence
    assert (found.values.ravel() == np.maximum(evidence[0] - evidence[2], 0)[1, 1:]).all()
    assert (found.siblings[1] == found.values.ravel()).all()
    assert (found.siblings[-1] == found.siblings[:-1].sum(0)).all()
    assert found.chosen.against == manifest.labels[7]


def test_siblings_of_positive_evidence_are_positive_parts_of_all_labels(explained, manifest):
    found = of_positive(explained, manifest, label="7")
    assert (found.siblings[:, :-1] == np.maximum(explained.maps.evidence[..., 1:], 0)).all()
    assert (found.siblings[2, -1] == found.values.ravel()).all()
