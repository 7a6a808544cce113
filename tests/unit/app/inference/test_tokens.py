"""app/inference/tokens.py: which array a request gets, and its form."""

import numpy as np
import pytest

from app.bundle import load_bundle
from app.errors import InvalidParameter
from app.inference.tokens import arranged, array_for
from app.settings import DEMO_BUNDLE

MANIFEST = load_bundle(DEMO_BUNDLE).manifest
WITH_LAYERS = MANIFEST.model_copy(update={"arrays": MANIFEST.arrays | {"layer_2": (65, 128), "layer_6": (65, 128)}})


def test_a_layer_is_one_that_the_bundle_was_exported_with():
    assert [array_for(WITH_LAYERS, layer) for layer in (None, 2, 6)] == ["tokens", "layer_2", "layer_6"]
    with pytest.raises(InvalidParameter, match=r"^The bundle was exported with the tokens of 2, 6: --layers 3 adds"):
        array_for(WITH_LAYERS, 3)
    with pytest.raises(InvalidParameter, match=r"^The bundle was exported with the tokens of no layer"):
        array_for(MANIFEST, 3)
    with pytest.raises(InvalidParameter, match=r"gives tokens\. Export the model again"):
        array_for(MANIFEST.model_copy(update={"arrays": {}}), None)


def test_patches_stand_row_by_row_without_what_is_before_them():
    tokens = np.arange(15 * 4, dtype=np.float16).reshape(15, 4)  # three before the patches
    grid = MANIFEST.tokens.model_copy(update={"grid": (3, 4), "prefix": ("class", "register", "register")})
    manifest = MANIFEST.model_copy(update={"tokens": grid})
    whole, patches = (arranged([tokens, tokens + 1], manifest, which) for which in ("all", "patches"))
    assert (whole.shape, patches.shape, patches.dtype) == ((2, 15, 4), (2, 3, 4, 4), np.float32)
    assert np.array_equal(patches[1, 2, 3], tokens[14] + 1)
