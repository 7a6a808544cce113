"""Every key of transformers' configuration classes: read, or known to change no number. Any other is refused by name.

A release of transformers that adds a switch fails the first test.
"""

import dataclasses
import json

import pytest
import transformers
from transformers import GenerationConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.families.huggingface_config import HEAD, TOWERS, WITHOUT_EFFECT
from model.checkpoints.families.huggingface_kinds import BACKBONE_ONLY, KINDS
from model.checkpoints.load import describe_checkpoint
from tests.support.altered import altered, outcome_of

OF_RELEASE_5 = sorted(KINDS.keys() - {"vit-hybrid"})
SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "patch_size": 4, "image_size": 20}
TEXT = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24, "vocab_size": 99}
ENDS = {"bos_token_id": 0, "eos_token_id": 1}
WORDS = {"hidden_act": "silu", "pooler_act": "linear"}
POOLER = {"pooler_act", "pooler_output_size"}
HYBRID = "huggingface-vit-hybrid"


def configuration(kind):
    """The class of the image network's configuration."""
    whole = CONFIG_MAPPING[kind]
    return whole.sub_configs["vision_config"] if KINDS[kind].nested else whole


def keys(configuration_class):
    """Fields of a class, and what an object of it states beside them."""
    fields = {field.name for field in dataclasses.fields(configuration_class)}
    return fields | {*configuration_class().to_dict()}


@pytest.mark.parametrize("kind", OF_RELEASE_5)
def test_every_key_of_the_configuration_classes_is_read_or_known_to_change_nothing(kind):
    read = {*KINDS[kind].defaults}
    assert keys(configuration(kind)) - read - {*HEAD} - WITHOUT_EFFECT == set()
    if KINDS[kind].nested:
        assert keys(CONFIG_MAPPING[kind]) - {*TOWERS, *HEAD} - WITHOUT_EFFECT == set()
    assert read & WITHOUT_EFFECT == set()
    assert read - keys(configuration(kind)) == set()


@pytest.mark.parametrize("kind", OF_RELEASE_5)
def test_the_defaults_are_those_of_the_class(kind):
    theirs = {field.name: field.default for field in dataclasses.fields(configuration(kind))}
    assert KINDS[kind].defaults == {key: theirs[key] for key in KINDS[kind].defaults}


def test_every_key_of_a_backbone_and_of_generation_is_known():
    assert keys(CONFIG_MAPPING["bit"]) - {*BACKBONE_ONLY, *HEAD} - WITHOUT_EFFECT == set()
    assert {*GenerationConfig._get_default_generation_params()} - WITHOUT_EFFECT == OF_ASSISTANTS


OF_ASSISTANTS = {  # of the object alone: no configuration of a model has ever stated them
    "assistant_confidence_threshold",
    "assistant_lookbehind",
    "num_assistant_tokens",
    "num_assistant_tokens_schedule",
    "target_lookbehind",
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with a small model of a kind, which gives embeddings, as transformers saves it."""
    folders = {}

    def save(kind):
        if kind not in folders:
            sizes = SIZES if "dinov2" in kind else {**SIZES, "intermediate_size": 40}
            if KINDS[kind].nested:
                sizes = {"vision_config": sizes, "text_config": {**TEXT, **ENDS}, "projection_dim": 12}
            config = CONFIG_MAPPING[kind](**sizes)
            folders[kind] = tmp_path_factory.mktemp(kind)
            model = getattr(transformers, f"{type(config).__name__.removesuffix('Config')}Model")
            model(config).save_pretrained(folders[kind])
            transformers.ViTImageProcessorPil(size={"height": 20, "width": 20}).save_pretrained(folders[kind])
        return folders[kind]

    return save


def content_of(folder):
    return json.loads((folder / "config.json").read_text())


def outcome(folder, changes):
    """What follows from config.json with some keys changed. Part and key have a dot between."""
    original = (folder / "config.json").read_text()
    content = json.loads(original)
    for place, value in changes.items():
        *parts, key = place.split(".")
        (content[parts[0]] if parts else content)[key] = value
    (folder / "config.json").write_text(json.dumps(content))
    try:
        return outcome_of(folder)
    finally:
        (folder / "config.json").write_text(original)


def other(key, value):
    """Another value of the same type, from which another network follows."""
    if key == "layer_scale_init_value":
        return 0.0
    if isinstance(value, bool):
        return not value
    return WORDS[key] if key in WORDS else 2 * value if value else 32 if value is None else 1


@pytest.mark.parametrize("kind", OF_RELEASE_5)
def test_what_is_read_changes_the_network_or_is_refused(saved, kind):
    folder = saved(kind)
    part = "vision_config." if KINDS[kind].nested else ""
    stated = content_of(folder)["vision_config"] if part else content_of(folder)
    before = outcome(folder, {})
    assert not isinstance(before, str)
    for key, default in KINDS[kind].defaults.items():
        same = outcome(folder, {f"{part}{key}": other(key, stated.get(key, default))}) == before
        assert same == (kind == "ijepa" and key in POOLER), key  # its poolers are refused


@pytest.mark.parametrize("kind", OF_RELEASE_5)
def test_a_key_that_is_not_known_is_refused_by_name(saved, kind):
    folder = saved(kind)
    for place in ("window_size", "vision_config.window_size") if KINDS[kind].nested else ("window_size",):
        assert outcome(folder, {place: None}) == outcome(folder, {})  # nothing is stated
        for value in (False, [1]):
            refusal = outcome(folder, {place: value})
            assert refusal.startswith(f"config.json states {place} {value!r}, and it is not known what that changes")


OTHER_TYPES = [("hidden_size", "24"), ("qkv_bias", 1), ("hidden_act", None), ("image_size", [20])]
OTHER_TYPES += [("image_size", [20, 20, 3]), ("patch_size", {"height": 4}), ("layer_norm_eps", "1e-5")]


@pytest.mark.parametrize(
    ("kind", "key", "value", "message"),
    [
        ("vit", "pruned_heads", {"0": [1]}, "config.json states pruned_heads "),
        ("vit", "auto_map", {"AutoModel": "my_vit.MyViT"}, "config.json states auto_map "),
        ("vit", "num_register_tokens", 4, "config.json states num_register_tokens "),  # of another model
        *(("vit", key, value, f"config.json has {key} {value!r}: expected such as ") for key, value in OTHER_TYPES),
        ("vit", "patch_size", [4, 5], "patches of 4 x 5 pixels are not square"),
        ("clip", "vision_config", 3, "config.json has the vision_config 3, which is not an object"),
    ],
)
def test_keys_and_values_without_a_network_here_are_refused(saved, kind, key, value, message):
    assert outcome(saved(kind), {key: value}).startswith(message)


@pytest.mark.parametrize("key", BACKBONE_ONLY)
def test_what_is_read_of_a_backbone_changes_the_network_or_is_refused(tmp_path, key):
    folder = altered(HYBRID, tmp_path)
    values = {"global_padding": "valid", "layer_type": "preactivation", "hidden_act": "gelu", "out_features": ["stem"]}
    values |= {"out_indices": [0], "depths": [2], "hidden_sizes": [64]}
    value = values.get(key) or other(key, content_of(folder)["backbone_config"][key])
    assert outcome(folder, {f"backbone_config.{key}": value}) != outcome(folder, {})


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("backbone_config.stem_pool", "config.json states backbone_config.stem_pool True"),
        ("use_timm_backbone", "config.json has use_timm_backbone: of backbones"),
        ("backbone_config.model_type", "a BiT backbone with model_type True"),
        ("backbone_config.depths", "config.json has a backbone with the depths True"),
        ("backbone_config", "config.json has backbone_config True: expected such as {}"),
    ],
)
def test_other_backbones_and_keys_of_one_that_are_not_known_are_refused(tmp_path, key, message):
    assert outcome(altered(HYBRID, tmp_path), {key: True}).startswith(message)


OF_RELEASE_4 = {  # beside the keys of generation
    **dict.fromkeys(("add_cross_attention", "gradient_checkpointing", "is_decoder", "is_encoder_decoder"), False),
    **dict.fromkeys(("tf_legacy_loss", "tie_encoder_decoder", "torchscript", "use_bfloat16"), False),
    "chunk_size_feed_forward": 1,
    "dropout": 1,
    "num_beams": 1,
    "pruned_heads": {},
    "bad_words_ids": None,
    "finetuning_task": "image-classification",
    "tie_word_embeddings": True,
    "torch_dtype": "float32",
    "transformers_version": "4.16.0.dev0",
}


@pytest.mark.parametrize(
    ("case", "part"), [("vit", ""), ("clip", "vision_config."), ("vit-hybrid", "backbone_config.")]
)
def test_what_release_4_wrote_into_every_file_changes_nothing(tmp_path, case, part):
    folder = altered(f"huggingface-{case}", tmp_path)
    changes = {f"{place}{key}": value for key, value in OF_RELEASE_4.items() for place in ("", part)}
    assert outcome(folder, changes) == outcome(folder, {})


def test_square_patches_may_have_two_sides(saved):
    assert outcome(saved("vit"), {"patch_size": [4, 4]}) == outcome(saved("vit"), {})


def test_a_whole_model_without_a_part_for_images_has_the_defaults_of_its_class(tmp_path):
    with pytest.raises(CheckpointError, match=r"gives \(20, 20\) and CLIPModel takes \(224, 224\)"):
        describe_checkpoint(altered("huggingface-clip", tmp_path, vision_config=None))
