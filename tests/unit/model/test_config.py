"""model/config.py: what a configuration derives, how it travels, and what it refuses."""

import json

import pytest

from model.config import RopeConfig, ViTConfig
from model.variants import VARIANTS, variant


def test_every_listed_variant_can_be_made_and_no_other():
    base = variant("B/16")
    assert (base.width, base.depth, base.mlp_dim, base.heads, base.grid) == (768, 12, 3072, 12, (14, 14))
    for name in VARIANTS:
        patch = int(name.split("/")[1])
        assert variant(name, image_size=(2 * patch, 3 * patch)).grid == (2, 3)
    with pytest.raises(ValueError, match="unknown variant 'XL/16'"):
        variant("XL/16")


def test_json_round_trip():
    rope = RopeConfig(temperature=100.0, reference=(2, 3))
    config = variant("mu/16", image_size=(32, 48), stem_layers=(1, 2, 1), registers=1, attn_dim=24, rope=rope)
    assert ViTConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_an_unknown_field_is_refused():
    with pytest.raises(TypeError, match="alibi"):
        ViTConfig.from_json({**variant("mu/16").to_json(), "alibi": True})
    with pytest.raises(TypeError, match="theta"):
        ViTConfig.from_json({**variant("mu/16").to_json(), "rope": {"theta": 100.0}})


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"pool": "max"}, "pool 'max' is none of"),
        ({"image_size": (32, 40)}, "not a multiple of patch_size"),
        ({"stem_layers": (1, 1, 1, 1)}, "multiple of the stem's stride 32"),
        ({"stem_layers": (1,), "patch_norm": "dual"}, "not on the features of a stem"),
        ({"heads": 3}, "width 32 is not a multiple of heads 3"),
        ({"attn_dim": 64, "attn_proj": False}, "without attn_proj"),
        ({"registers": -1}, "registers must be from 0 to 1,024, not -1"),
        ({"class_token": False, "pool": "mean", "distillation_token": True}, "needs a class token before it"),
        ({"relative_bias": True, "registers": 1}, "relative bias"),
        ({"width": 30, "positions": "sincos2d"}, "multiple of 4"),
        ({"block": "res_post", "layer_scale": True}, "no layer_scale"),
        ({"class_token": False}, "needs a class token"),
        ({"head_layers": 3}, "not between 1 and depth 2"),
        ({"head_layers": 2, "pool": "mean"}, "reads one layer"),
        ({"pool": "map", "gated_mlp": True}, "has a plain MLP"),
        ({"pool": "map", "heads": 3, "attn_dim": 48}, "splits width 32 into heads 3"),
        ({"pool": "map_all", "mlp_norm": True}, "has a plain MLP"),
        ({"pool": "map_all", "pool_heads": 0}, "pool_heads must be from 1"),
        ({"rope": RopeConfig(), "heads": 16}, "heads whose width is a multiple of 4, not 2"),
        ({"pool": "cls_mean", "final_norm": "after_pool"}, "normed before"),
        ({"distillation_head": True}, "needs a distillation token"),
        ({"distillation_head": True, "distillation_token": True, "representation_size": 8}, "one linear layer"),
    ],
)
def test_contradictions_are_refused(changes, complaint):
    with pytest.raises(ValueError, match=complaint):
        variant("mu/16", **{"image_size": (32, 48), **changes})


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"kind": "linear"}, "kind 'linear' is none of index, centered, learned"),
        ({"temperature": 0.0}, "the temperature of rope"),
        ({"temperature": float("nan")}, "the temperature of rope"),
        ({"offset": float("inf")}, "the offset of rope"),
        ({"reference": (0, 4)}, "the reference grid of rope"),
        ({"kind": "learned", "reference": (4, 4)}, "have no reference grid"),
        ({"kind": "learned", "pairs": "halves"}, "turn neighbours, not halves"),
    ],
)
def test_rotary_positions_out_of_range_are_refused(fields, complaint):
    with pytest.raises(ValueError, match=complaint):
        RopeConfig(**fields)
