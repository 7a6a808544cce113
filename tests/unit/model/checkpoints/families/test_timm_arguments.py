"""model/checkpoints/families/timm_arguments.py and timm_images.py: nothing that a file of timm states is left out.

The lists of what can be stated are timm's: timm_architectures.json has them, and `make parity` compares them with the
timm that is installed.
"""

from typing import Any

import pytest
import torch

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.families.timm_architectures import Architecture, table
from model.checkpoints.families.timm_arguments import OF_LOADING, OF_SOURCES, OF_TRAINING, READ, REFUSED, with_arguments
from model.checkpoints.families.timm_layers import slots
from model.checkpoints.families.timm_network import network
from model.checkpoints.load import describe_checkpoint
from tests.support.altered import training_run, without
from tests.support.timm_files import PLAIN, SIZES, config_of, load, toy, write

# Arguments that timm.py and the tensors decide, and not the configuration: the size of images, how many channels and
# classes there are, biases and projections that a file has or has not.
ELSEWHERE = {"img_size", "in_chans", "num_classes", "dynamic_img_size", "dynamic_img_pad", "proj_bias"}
OF_TENSORS = {"qkv_fused", "num_kv_heads", "attn_only_layer_scale", "rel_pos_dim", "shared_rel_pos"}
WITHOUT_EFFECT = {("VisionTransformerDistilled", "pool_include_prefix")}  # it reads its two tokens
# What has an effect only beside others.
BESIDE: dict[str, dict[str, Any]] = {
    "rope_": {"use_rot_pos_emb": True},
    "ref_feat_shape": {"use_rot_pos_emb": True},
    "attn_pool_": {"global_pool": "map"},
    "pool_include_prefix": {"global_pool": "avg"},
    "use_post_transformer_norm": {"use_fc_norm": False},
    "swiglu_align_to": {"swiglu_mlp": True, "mlp_ratio": 1.1},
}


def changed(value: Any, name: str) -> Any:
    """Another value than the default."""
    known = {
        "init_values": None if value else 0.5,
        "fc_norm": True,
        "use_fc_norm": False,
        "use_post_transformer_norm": False,
        "attn_pool_num_heads": 2,
        "attn_pool_mlp_ratio": 2.0,
        "ref_feat_shape": 7,
        "attn_type": "gated",
        "embed_dim": 1536,
        "num_heads": 24,
        "global_pool": "max",
        "swiglu_align_to": 64,
    }
    if name in known:
        return known[name] if value != known[name] else None
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else "unheard of"


def outcome(architecture: Architecture) -> Any:
    try:
        config = network(architecture, image_size=(32 * 16 * 17, 16 * 17), num_classes=5)
    except CheckpointError as reason:
        return str(reason)
    return config, slots(architecture, config)


@pytest.mark.parametrize(
    ("model_class", "name"),
    [(model_class, name) for model_class, names in table()["classes"].items() for name in names],
)
def test_every_argument_of_timms_classes_counts_or_is_known_not_to(model_class, name):
    """A switch that a release of timm adds fails here, once timm_architectures.json is made from it."""
    beside = next((more for start, more in BESIDE.items() if name.startswith(start)), {})
    usual = Architecture(model_class, model_class, table()["classes"][model_class] | beside, "bicubic_antialias", {})
    other = usual.arguments | {name: changed(usual.arguments[name], name)}
    has_effect = outcome(usual) != outcome(usual._replace(arguments=other))
    without_effect = name in OF_TRAINING | ELSEWHERE | OF_TENSORS or (model_class, name) in WITHOUT_EFFECT
    assert has_effect != without_effect


def test_every_argument_of_timms_factory_is_known_not_to_count_or_is_refused():
    entry = Architecture("vit", "Eva", table()["classes"]["Eva"], "bicubic_antialias", {})
    for name in table()["factory"]:
        if name not in OF_LOADING:
            with pytest.raises(CheckpointError, match=name):
                with_arguments(entry, {name: "something"})
    assert OF_LOADING - {"device", "dtype"} <= {*table()["factory"]}
    assert REFUSED.keys() <= {*table()["factory"]}


def test_every_field_of_timms_pretrained_cfg_is_read_or_known_not_to_count():
    assert {*table()["pretrained_cfg"]} == (READ | OF_SOURCES) - {"labels"}  # of the legacy form


def test_every_argument_that_timm_reads_for_preprocessing_is_read():
    of_images = {"chans", "in_chans", "input_size", "img_size", "mean", "std"}
    assert {*table()["data_config"]} == of_images | {"crop_pct", "crop_mode", "interpolation"}


BEIT, DINOV3, MIXED = "beit_base_patch16_224", "vit_small_patch16_dinov3", "vit_small_patch16_rope_mixed_224"
ROPE, DISTILLED = "vit_small_patch16_rope_224", "deit_tiny_distilled_patch16_224"


@pytest.mark.parametrize(
    ("architecture", "arguments", "message"),
    [
        (BEIT, {"act_layer": "silu"}, r"beit_base_patch16_224 has no argument act_layer"),  # of another class
        (DINOV3, {"attn_type": "gated"}, "attn_type='gated': supported are 'eva', 'rope'"),
        (ROPE, {"rope_mrope_section": [2, 1, 1]}, r"rope_mrope_section=\[2, 1, 1\]"),
        (MIXED, {"rope_rotate_half": True}, "which timm does not have"),
        (DISTILLED, {"reg_tokens": 2}, "which timm's class leaves out"),
        (PLAIN, {"proj_bias": False}, "proj_bias=False, the file has attn.proj with a bias"),
    ],
)
def test_arguments_without_a_network_here_are_refused_by_name(tmp_path, architecture, arguments, message):
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path, toy(architecture)[1], architecture, model_args=arguments)


def of_four_channels(state):
    return state | {"patch_embed.proj.weight": torch.ones(24, 4, 8, 8)}


@pytest.mark.parametrize(
    ("change", "config", "message"),
    [
        (dict, {"recipe": {"padding": 4}}, "pretrained_cfg of config.json has padding, which timm does not know"),
        (dict, {"recipe": {"num_classes": 7}}, "config.json says 7 classes, the head has 5"),
        (dict, {"recipe": {"input_size": [4, 32, 32], "mean": [0.5] * 4}}, "in_chans=4: supported are 3"),
        (dict, {"recipe": {"mean": [0.5] * 4}}, r"mean has 4 numbers \(config.json\)"),
        (dict, {"num_features": 768}, "config.json says num_features 768, the file has 24"),
        (dict, {"problem_type": "regression"}, "config.json says problem_type regression"),
        (of_four_channels, {}, "has in_chans=4: supported are 3, which are red, green and blue"),
        (without("attn.proj.bias"), {}, "proj_bias=True, the file has attn.proj without a bias"),
        (without("ls2"), {"model_args": {"init_values": 1e-5}}, "attn_only_layer_scale=False, the file has MLPs wit"),
    ],
)
def test_what_config_json_and_tensors_say_is_not_left_out(tmp_path, change, config, message):
    state = change(toy(PLAIN, **config.get("model_args", {}))[1])
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path, state, PLAIN, **config)


def test_arguments_of_loading_and_of_training_change_nothing(tmp_path):
    harmless = {"drop_path_rate": 0.1, "scriptable": True, "features_only": False, "use_naflex": None}
    assert load(tmp_path, toy(PLAIN)[1], PLAIN, model_args=harmless).config == toy(PLAIN)[0].config


def test_labels_that_are_not_exclusive_are_scored_alone(tmp_path):
    """TimmWrapper of transformers has a problem_type, which its pipeline reads."""
    assert load(tmp_path, toy(PLAIN)[1], PLAIN, problem_type="multi_label_classification").score == "sigmoid"
    assert load(tmp_path, toy(PLAIN)[1], PLAIN, problem_type="single_label_classification").score == "softmax"


def test_what_a_pretrained_cfg_leaves_out_is_timms_default(tmp_path):
    """PretrainedCfg of timm 1.0.31: ImageNet's mean, though the architecture is published with another."""
    config = config_of(PLAIN) | {"pretrained_cfg": {"input_size": [3, 32, 32], "crop_pct": 0}}
    recipe = load_checkpoint(write(tmp_path, toy(PLAIN)[1], config)).preprocessing
    assert (recipe.mean, recipe.std) == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert recipe.resize_size == (36, 36)  # 32 / 0.875


@pytest.mark.parametrize(
    ("architecture", "arguments", "size", "message"),
    [
        # The figures are timm's: "Input height (100) should be divisible by patch size (8)."
        (PLAIN, {"dynamic_img_size": True}, 100, "100 x 100 pixels are not whole patches of 8"),
        ("vit_small_patch16_dinov3", {}, 100, "and with dynamic_img_size timm refuses them: --set image_size=96,96"),
        # It pads to 104, and without dynamic_img_size it fails.
        (PLAIN, {"dynamic_img_size": True, "dynamic_img_pad": True}, 100, "and dynamic_img_pad fills them up"),
        # "Input height (100) doesn't match model (32)."
        (PLAIN, {}, 100, "images have 100 x 100 pixels and .* is made for 32 x 32"),
        (PLAIN, {"img_size": None}, 100, "images have 100 x 100 pixels and .* is made for 224 x 224"),
    ],
)
def test_sizes_that_timm_pads_or_refuses_are_refused(tmp_path, architecture, arguments, size, message):
    config = config_of(architecture, model_args=arguments, recipe={"input_size": [3, size, size]})
    folder = write(tmp_path, toy(architecture)[1], config)
    with pytest.raises(CheckpointError, match=message):
        describe_checkpoint(folder)
    assert load_checkpoint(folder, overrides={"image_size": "96,96"}).config.image_size == (96, 96)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"in_chans": 1}, "in_chans=1: supported are 3"),
        ({"input_size": [4, 32, 32]}, "in_chans=4: supported are 3"),
        ({"input_img_mode": "HSV"}, "input_img_mode HSV: supported is RGB"),
        ({"num_classes": 7}, "args in the file say 7 classes, the head has 5"),
        ({"model_kwargs": {"img_size": 32}, "input_size": [3, 48, 48]}, "48 x 48 pixels and .* made for 32 x 32"),
        ({"model_kwargs": {"foo": 1}}, "has no argument foo"),
        ({"naflex_loader": True}, "naflex_loader"),
        ({"crop_mode": "border"}, r"args.crop_mode of the file \(border\) cannot be read"),
    ],
)
def test_the_command_line_of_train_py_is_not_left_out(tmp_path, arguments, message):
    file = training_run(tmp_path, "vit_tiny_patch16_224", toy(PLAIN)[1], **arguments)
    with pytest.raises(CheckpointError, match=message):
        describe_checkpoint(file, overrides=SIZES)


def test_a_resize_that_is_said_goes_before_that_of_the_crop_pct(tmp_path):
    file = training_run(tmp_path, "vit_tiny_patch16_224", toy(PLAIN)[1], resize_size=40)
    assert describe_checkpoint(file, overrides=SIZES).preprocessing.resize_size == (40, 40)
    with pytest.raises(CheckpointError, match="give --set resize_size= too"):
        describe_checkpoint(file, overrides=SIZES | {"image_size": "48,48"})
    both = {"image_size": "48,48", "resize_size": "60,60"}
    assert describe_checkpoint(file, overrides=SIZES | both).preprocessing.resize_size == (60, 60)
