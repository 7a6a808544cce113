"""open_clip_config.json: every key is read, known to change nothing, or refused by name."""

import pytest

from model.checkpoints.families.openclip import (
    DEFAULTS,
    NOT_OF_RECIPES,
    NOT_SUPPORTED,
    OF_MODELS,
    RECIPE,
    WITHOUT_EFFECT,
)
from tests.support.altered import GOLDEN, altered, outcome_of

TOWER = "model_cfg.vision_cfg"
CASE = "openclip-average"
OTHERS = {  # than the case has, and of their type
    "layers": 3,
    "width": 48,
    "head_width": 12,
    "mlp_ratio": 2.0,
    "patch_size": 2,
    "image_size": [20, 24],
    "ls_init_value": None,
    "no_ln_pre": False,
    "final_ln_after_pool": False,
    "pool_type": "tok",
    "act_kwargs": {"approximate": "tanh"},
    "norm_kwargs": {"eps": 1e-4},
}


def outcome(folder, **keys):
    folder.mkdir()
    return outcome_of(altered(CASE, folder, **keys))


@pytest.fixture(scope="module")
def before():
    return outcome_of(GOLDEN / CASE)


@pytest.mark.parametrize("name", DEFAULTS)
def test_what_is_read_of_the_tower_changes_the_network(tmp_path, before, name):
    assert outcome(tmp_path / "x", **{f"{TOWER}.{name}": OTHERS[name]}) != before


@pytest.mark.parametrize(
    ("part", "names"),
    [
        (TOWER, WITHOUT_EFFECT),
        ("model_cfg", sorted({*OF_MODELS} - {"vision_cfg", "quick_gelu"})),
        ("preprocess_cfg", NOT_OF_RECIPES),
    ],
)
def test_what_changes_nothing_is_accepted(tmp_path, before, part, names):
    assert outcome(tmp_path / "x", **{f"{part}.{name}": 7 for name in names}) == before


@pytest.mark.parametrize("name", NOT_SUPPORTED)
def test_switches_of_the_tower_that_are_not_supported_are_refused(tmp_path, before, name):
    assert outcome(tmp_path / "x", **{f"{TOWER}.{name}": NOT_SUPPORTED[name]}) == before
    assert f"has an image tower with {name} True, which" in outcome(tmp_path / "y", **{f"{TOWER}.{name}": True})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        *(
            ({f"{TOWER}.window": value}, f"states window {value!r} in vision_cfg, and")
            for value in (False, 0, {}, "new")
        ),
        ({"model_cfg.window": 0}, "states window 0 in model_cfg, and"),
        ({"preprocess_cfg.window": 0}, "states window 0 in preprocess_cfg, and"),
        ({f"{TOWER}.norm_kwargs": {"eps": 1e-3, "bias": False}}, "has the norm_kwargs "),
        ({f"{TOWER}.act_kwargs": {"inplace": True}}, "has the act_kwargs "),
        ({f"{TOWER}.act_kwargs": {"approximate": "tanh"}, "model_cfg.quick_gelu": True}, "has the act_kwargs "),
    ],
)
def test_a_name_and_an_argument_that_are_not_known_are_refused(tmp_path, keys, message):
    assert outcome(tmp_path / "x", **keys).startswith(f"open_clip_config.json {message}")


def test_forms_of_the_recipe(tmp_path):
    """open_clip/transform.py: one number for all channels, and "random", which is for training."""
    one = {"preprocess_cfg.mean": 0.5, "preprocess_cfg.std": 0.25, "preprocess_cfg.interpolation": "random"}
    *_, recipe = outcome(tmp_path / "x", **one)
    assert (recipe.mean, recipe.std, recipe.interpolation) == ((0.5,) * 3, (0.25,) * 3, "bicubic")
    *_, recipe = outcome(tmp_path / "y", **{f"{TOWER}.image_size": [20, 24], "preprocess_cfg.resize_mode": "shortest"})
    assert (recipe.size, recipe.interpolation) == ((20, 24), "bicubic")  # of ResizeKeepRatio, whatever is stated
    assert {*RECIPE} == {"mean", "std", "interpolation", "resize_mode"}
