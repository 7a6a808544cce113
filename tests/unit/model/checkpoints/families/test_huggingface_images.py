"""model/checkpoints/families/huggingface_images.py: every form of preprocessor_config.json."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import transformers
from PIL import Image

from app.images.preprocess import preprocess
from export.image_spec import image_spec
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.facts import Facts
from model.checkpoints.families.huggingface_images import (
    CLIP_MEAN,
    FILE,
    HALF,
    PROCESSORS,
    WITHOUT_EFFECT,
    describe_images,
)
from model.checkpoints.families.huggingface_kinds import KINDS
from model.preprocessing import IMAGENET_MEAN

BY_HAND = {"resize_mode": "squash", "resize_size": "30,30", "crop": "none", "interpolation": "box"}
BY_HAND |= {"mean": "0.1,0.2,0.3", "std": "1.0,1.0,1.0"}


def described(content, *, facts=None, processor="ViT"):
    source = SimpleNamespace(json=lambda name: json.loads(json.dumps(content)) if name == FILE else {})
    return describe_images(source, facts or Facts(), processor=processor, size=(30, 30))


SQUARE, BIT = (224, 224), {"image_processor_type": "BitImageProcessor"}
DINOV3 = {"image_processor_type": "DINOv3ViTImageProcessor"}
OLD = {"feature_extractor_type": "ViTFeatureExtractor", "size": 64}
OBLONG = {"size": {"shortest_edge": 64}, "crop_size": {"height": 40, "width": 48}, "do_center_crop": True}


@pytest.mark.parametrize(
    ("content", "mode", "resize", "crop", "size", "interpolation", "mean"),
    [
        ({}, "squash", SQUARE, "none", SQUARE, "bilinear", HALF),
        ({"image_processor_type": "DeiTImageProcessor"}, "squash", (256, 256), "center", SQUARE, "bicubic", HALF),
        ({"image_processor_type": "BeitImageProcessorFast"}, "squash", SQUARE, "none", SQUARE, "bicubic", HALF),
        (DINOV3, "squash", SQUARE, "none", SQUARE, "bilinear", IMAGENET_MEAN),
        (OLD, "squash", (64, 64), "none", (64, 64), "bilinear", HALF),
        (BIT | {"size": 64, "crop_size": 48}, "shortest", (64, 64), "center", (48, 48), "bicubic", CLIP_MEAN),
        (OBLONG, "shortest", (64, 64), "center", (40, 48), "bilinear", HALF),
        ({"size": [40, 48], "resample": "nearest-exact"}, "squash", (40, 48), "none", (40, 48), "nearest", HALF),
        ({"crop_size": None, "resample": 1}, "squash", SQUARE, "none", SQUARE, "lanczos", HALF),
    ],
)
def test_every_form_of_it(content, mode, resize, crop, size, interpolation, mean):
    recipe = described({"do_resize": True, **content})
    assert (recipe.resize_mode, recipe.resize_size, recipe.crop, recipe.size) == (mode, resize, crop, size)
    assert (recipe.interpolation, recipe.mean, recipe.crop_rounding) == (interpolation, mean, "floor")


NAMES = [name for name in PROCESSORS if name not in ("DINOv3ViT", "ViTHybrid")]  # there is none with Pillow


@pytest.mark.parametrize("name", NAMES)
def test_every_key_of_the_processors_is_read_or_known_to_change_nothing(name):
    """One that a new release of transformers adds fails here."""
    processor = getattr(transformers, f"{name}ImageProcessorPil")
    keys = {*processor.valid_kwargs.__annotations__, *processor().to_dict()}
    assert keys - {*PROCESSORS[name], "crop_size"} - WITHOUT_EFFECT == set()
    assert described(json.loads(processor().to_json_string())) == described({"do_resize": True}, processor=name)


@pytest.mark.parametrize("name", NAMES)
def test_null_is_what_it_is_for_transformers(name, tmp_path):
    """A step is off, a value of a step that is done is refused, and any other null changes nothing."""
    processor = getattr(transformers, f"{name}ImageProcessorPil")
    sizes = {"size": {"height": 40, "width": 40}, "crop_size": {"height": 30, "width": 30}}
    content = {**json.loads(processor().to_json_string()), **sizes, "do_center_crop": True}
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (61, 133, 3), dtype=np.uint8))
    for key in {*PROCESSORS[name], "crop_size", "pad_size", "do_convert_rgb"} - {"do_resize"}:
        stated = content | {key: None}
        (tmp_path / FILE).write_text(json.dumps(stated))
        facts = Facts()
        recipe = described(stated, facts=facts)
        try:
            theirs = processor.from_pretrained(tmp_path)(image, return_tensors="np")["pixel_values"][0]
        except ValueError:
            assert f"no value of {key}, which do_" in facts.missing[0]
            continue
        assert not facts.missing, key
        pixels, _ = preprocess(image, image_spec(recipe))
        ours = ((pixels / 255 - recipe.mean) / recipe.std).transpose(2, 0, 1)
        assert ours.shape == theirs.shape, key
        assert np.abs(ours / np.abs(theirs).max() - theirs / np.abs(theirs).max()).max() < 1e-5, key


def test_steps_that_are_not_done_and_keys_that_change_nothing_do_not_matter():
    content = {**dict.fromkeys(WITHOUT_EFFECT - {"image_processor_type", "feature_extractor_type"}, "x"), "size": 64}
    assert described(content | {"do_flip_channel_order": False, "crop_pct": None}) == described({"size": 64})


@pytest.mark.parametrize(
    ("content", "mean", "std"),
    [
        ({"do_normalize": False}, (0, 0, 0), (1, 1, 1)),
        ({"do_rescale": False, "image_mean": [51, 102, 204], "image_std": 255}, (0.2, 0.4, 0.8), (1, 1, 1)),
        ({"rescale_factor": 2 / 255, "image_mean": [1, 1, 1], "image_std": 1.0}, HALF, HALF),
        ({"do_normalize": False, "rescale_factor": 2 / 255}, (0, 0, 0), HALF),
    ],
)
def test_mean_and_std_are_of_pixels_between_0_and_1(content, mean, std):
    recipe = described({"image_processor_type": "ViTImageProcessor", **content})
    assert recipe.mean == pytest.approx(mean)
    assert recipe.std == pytest.approx(std)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "there is no preprocessor_config.json beside the weights: write it with processor.save_pretrained"),
        ({"image_processor_type": "OwnImageProcessor"}, "names OwnImageProcessor"),
        ({"do_resize": None}, "pads or does not resize"),
        ({"size": {"shortest_edge": 20, "longest_edge": 40}}, "size {'shortest_edge': 20, 'longest_edge': 40}"),
        ({"do_center_crop": True, "crop_size": {"shortest_edge": 9}}, "the crop_size {'shortest_edge': 9}, which"),
        ({"resample": 7}, "resample 7"),
        ({"image_mean": ["0.5", "0.5", "0.5"]}, "the image_mean ['0.5', '0.5', '0.5']: expected one number, or three"),
        ({"image_std": [0.5]}, "the image_std [0.5]: expected one number, or three for red, green and blue"),
        ({"image_std": 0}, "std"),
        ({"rescale_factor": 0}, "the rescale_factor 0: expected a number"),
        ({"do_flip_channel_order": True}, "states do_flip_channel_order True, and it is not known"),
        ({"auto_map": {"AutoImageProcessor": "own.Own"}}, "states auto_map {'AutoImageProcessor': 'own.Own'}, and it"),
    ],
)
def test_unknown_facts_must_be_given_by_hand(content, message):
    facts = Facts({"std": "1,1,1"})
    described(content, facts=facts)
    (sentence,) = facts.missing
    assert message in sentence
    assert "example, the default of ViTImageProcessor, unless the model was trained with another: " in sentence
    assert "--set mean=0.5,0.5,0.5" in sentence
    assert "--set resize_size=30,30" in sentence  # that of the network
    assert "--set std=" not in sentence
    given = Facts(BY_HAND)
    recipe = described(content, facts=given)
    assert (recipe.size, recipe.interpolation, recipe.mean, given.missing) == ((30, 30), "box", (0.1, 0.2, 0.3), [])


def test_recipes_that_do_not_end_at_one_size_are_refused():
    with pytest.raises(CheckpointError, match=r"a crop of \(224, 224\) is larger"):
        described({"do_center_crop": True, "size": 200, "crop_size": 224})
    with pytest.raises(CheckpointError, match="without a crop does not give every image"):
        described({"size": {"shortest_edge": 224}})


def test_a_mean_for_pixels_from_0_to_255_is_refused_with_the_divided_numbers():
    by_hand = {"mean": "123.675,116.28,103.53", "std": "58.395,57.12,57.375"}
    with pytest.raises(CheckpointError, match=r"is --set mean=0\.485,0\.456,0\.406 --set std=0\.229,0\.224,0\.225$"):
        described({"size": 224}, facts=Facts(by_hand))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "vit-hybrid"])  # it is not in transformers 5
def test_the_example_for_a_missing_file_is_the_default_of_the_model_type(kind):
    from transformers.models.auto import image_processing_auto  # takes seconds, which only these tests wait for

    name, facts = KINDS[kind].processor, Facts()
    theirs = image_processing_auto.IMAGE_PROCESSOR_MAPPING_NAMES.get(kind, {})
    assert theirs.get("torchvision", f"{name}ImageProcessor") == f"{name}ImageProcessor"
    described({}, facts=facts, processor=name)
    copied = Facts(dict(flag.split("=") for flag in re.findall(r"--set (\S+)", facts.missing[0])))
    default = described({"do_resize": True}, processor=name).resized((30, 30))
    assert described({}, facts=copied, processor=name) == default
    assert copied.missing == []
