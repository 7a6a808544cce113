"""app/attention.py: which numbers a request gets."""

from pathlib import Path

import numpy as np
import pytest

from app.attention import choose
from app.bundle import load_bundle
from app.errors import InvalidParameter
from app.store import Record
from tests.records import make_maps, make_record

LAYERS, HEADS, TOKENS = 6, 4, 65


@pytest.fixture(scope="module")
def manifest():
    return load_bundle(Path("app/demo")).manifest


@pytest.fixture(scope="module")
def record() -> Record:
    rng = np.random.default_rng(0)
    return make_record(
        maps=make_maps(
            attention=rng.dirichlet(np.ones(TOKENS), (LAYERS, HEADS)).astype(np.float16),
            rollout=rng.dirichlet(np.ones(TOKENS)).astype(np.float32),
        )
    )


def values(record, manifest, method="class_token", layer=None, head="mean"):
    return choose(record, manifest, method=method, layer=layer, head=head).values


def test_one_head_of_one_layer(record, manifest):
    expected = record.maps.attention[2, 3, 1:].astype(np.float32).reshape(8, 8)
    assert (values(record, manifest, layer="2", head="3") == expected).all()


def test_the_last_layer_is_the_default_and_negative_counts_from_the_end(record, manifest):
    assert (values(record, manifest) == values(record, manifest, layer="5")).all()
    assert (values(record, manifest, layer="-6") == values(record, manifest, layer="0")).all()
    assert choose(record, manifest, method="class_token", layer="-1", head="mean").layer == 5


@pytest.mark.parametrize("head", ["mean", "max", "min"])
def test_heads_are_reduced(record, manifest, head):
    expected = getattr(np, head)(record.maps.attention[1].astype(np.float32), axis=0)[1:].reshape(8, 8)
    assert values(record, manifest, layer="1", head=head) == pytest.approx(expected)


def test_the_mean_over_layers(record, manifest):
    expected = record.maps.attention.astype(np.float32).mean(axis=(0, 1))[1:].reshape(8, 8)
    assert values(record, manifest, layer="mean") == pytest.approx(expected)


def test_rollout_has_neither_layer_nor_head_and_says_so(record, manifest):
    chosen = choose(record, manifest, method="rollout", layer="1", head="2")
    assert (chosen.layer, chosen.head) == ("all", "mean")
    assert (chosen.values == record.maps.rollout[1:].reshape(8, 8)).all()


def test_nothing_of_a_row_is_lost(record, manifest):
    chosen = choose(record, manifest, method="class_token", layer="0", head="0")
    assert chosen.values.sum() + chosen.class_token_mass + chosen.register_mass == pytest.approx(1, abs=1e-3)
    assert chosen.class_token_mass == pytest.approx(float(record.maps.attention[0, 0, 0]))


@pytest.mark.parametrize("layer", ["6", "-7", "99", "x", "", "1.5", "9" * 30, "max", "٣" * 12])
def test_a_layer_that_is_not_there_is_refused(record, manifest, layer):
    with pytest.raises(InvalidParameter, match="0 to 5"):
        values(record, manifest, layer=layer)


@pytest.mark.parametrize("head", ["4", "-1", "x", "", "median"])
@pytest.mark.parametrize("method", ["class_token", "rollout"])
def test_a_head_that_is_not_there_is_refused(record, manifest, head, method):
    with pytest.raises(InvalidParameter, match="0 to 3"):
        values(record, manifest, method=method, head=head)
