"""model/checkpoints/families/huggingface_images.py: every form of preprocessor_config.json."""

import json
from types import SimpleNamespace

import pytest

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.facts import Facts
from model.checkpoints.families.huggingface_images import (
    CLIP_MEAN,
    CLIP_STD,
    FILE,
    IMAGENET_MEAN,
    describe_images,
)

HALF = (0.5, 0.5, 0.5)
BY_HAND = {
    "resize_mode": "squash",
    "resize_size": "30,30",
    "crop": "none",
    "interpolation": "box",
    "mean": "0.1,0.2,0.3",
    "std": "1.0,1.0,1.0",
}


def described(found, *, facts=None, processor="ViT", size=(30, 30)):
    source = SimpleNamespace(json=lambda name: json.loads(json.dumps(found)) if name == FILE else {})
    return describe_images(source, facts or Facts(), processor=processor, size=size)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({}, ("squash", (224, 224), "none", (224, 224), "bilinear", HALF)),
        ({"image_processor_type": "DeiTImageProcessor"}, ("squash", (256, 256), "center", (224, 224), "bicubic", HALF)),
        (
            {"image_processor_type": "BeitImageProcessorFast"},
            ("squash", (224,) * 2, "none", (224,) * 2, "bicubic", HALF),
        ),
        (
            {"image_processor_type": "DINOv3ViTImageProcessorFast"},
            ("squash", (224,) * 2, "none", (224,) * 2, "bilinear", tuple(IMAGENET_MEAN)),
        ),
        (
            {"feature_extractor_type": "ViTFeatureExtractor", "size": 64},
            ("squash", (64, 64), "none", (64, 64), "bilinear", HALF),
        ),
        (
            {"image_processor_type": "BitImageProcessor", "size": 64, "crop_size": 48},
            ("shortest", (64, 64), "center", (48, 48), "bicubic", tuple(CLIP_MEAN)),
        ),
        (
            {"size": {"shortest_edge": 64}, "crop_size": {"height": 40, "width": 48}, "do_center_crop": True},
            ("shortest", (64, 64), "center", (40, 48), "bilinear", HALF),
        ),
        ({"size": [40, 48], "resample": "nearest-exact"}, ("squash", (40, 48), "none", (40, 48), "nearest", HALF)),
        ({"size": None, "resample": 1}, ("squash", (224, 224), "none", (224, 224), "lanczos", HALF)),
    ],
)
def test_every_form_of_it(found, expected):
    found = {"do_resize": True, **found}
    recipe = described(found)
    geometry = (recipe.resize_mode, recipe.resize_size, recipe.crop, recipe.size)
    assert (*geometry, recipe.interpolation, recipe.mean) == expected
    assert recipe.crop_rounding == "floor"


def test_without_a_name_it_is_the_processor_of_the_model():
    assert described({"do_resize": True}, processor="Bit").std == tuple(CLIP_STD)


@pytest.mark.parametrize(
    ("found", "mean", "std"),
    [
        ({"do_normalize": False}, (0, 0, 0), (1, 1, 1)),
        ({"do_rescale": False, "image_mean": [51, 102, 204], "image_std": 255}, (0.2, 0.4, 0.8), (1, 1, 1)),
        ({"rescale_factor": 2 / 255, "image_mean": [1, 1, 1], "image_std": 1.0}, HALF, HALF),
        ({"do_normalize": False, "rescale_factor": 2 / 255}, (0, 0, 0), HALF),
    ],
)
def test_mean_and_std_are_of_pixels_between_0_and_1(found, mean, std):
    recipe = described({"image_processor_type": "ViTImageProcessor", **found})
    assert recipe.mean == pytest.approx(mean)
    assert recipe.std == pytest.approx(std)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({}, "there is no preprocessor_config.json beside the weights: write it with processor.save_pretrained"),
        ({"image_processor_type": "OwnImageProcessor"}, "names OwnImageProcessor"),
        ({"do_resize": False}, "pads or does not resize"),
        ({"do_pad": True}, "pads or does not resize"),
        ({"size": {"shortest_edge": 20, "longest_edge": 40}}, "size {'shortest_edge': 20, 'longest_edge': 40}"),
        ({"do_center_crop": True}, "size None"),
        ({"resample": 7}, "resample 7"),
    ],
)
def test_unknown_facts_must_be_given_by_hand(found, message):
    facts = Facts({"std": "1,1,1"})
    described(found, facts=facts)
    (sentence,) = facts.missing
    assert message in sentence
    assert "--set mean=0.485,0.456,0.406" in sentence
    assert "--set resize_size=34,34" in sentence  # in proportion to the size of the network
    assert "--set std=" not in sentence
    given = Facts(BY_HAND)
    recipe = described(found, facts=given)
    assert (recipe.size, recipe.interpolation, recipe.mean, given.missing) == ((30, 30), "box", (0.1, 0.2, 0.3), [])


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"do_center_crop": True, "size": 200, "crop_size": 224}, r"a crop of \(224, 224\) is larger"),
        ({"size": {"shortest_edge": 224}}, "without a crop does not give every image"),
    ],
)
def test_recipes_that_do_not_end_at_one_size_are_refused(found, message):
    with pytest.raises(CheckpointError, match=message):
        described(found)


def test_a_person_overrules_the_file():
    recipe = described(
        {"image_processor_type": "DeiTImageProcessor"}, facts=Facts({"image_size": "448,448", "std": "1.0,1.0,1.0"})
    )
    assert (recipe.size, recipe.resize_size, recipe.std) == ((448, 448), (512, 512), (1, 1, 1))


def test_the_shorter_edge_of_another_aspect_covers_it():
    found = {"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 224}}
    recipe = described(found, facts=Facts({"image_size": "224,448"}))
    assert (recipe.resize_mode, recipe.resize_size, recipe.size) == ("shortest", (224, 448), (224, 448))


def test_a_word_that_is_none_is_refused():
    with pytest.raises(ValueError, match="interpolation 'sharp' is none of nearest"):
        described({"do_resize": True}, facts=Facts({"interpolation": "sharp"}))
