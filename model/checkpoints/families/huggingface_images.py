"""Hugging Face's preprocessor_config.json: the pixels of transformers' PIL-backed image processors.

Without torchvision, transformers uses these. With torchvision, the processors without a suffix resize tensors, and
their pixels differ slightly.
"""

import re
from math import isfinite
from typing import Any, Literal

from model.checkpoints.checkpoint import Origin
from model.checkpoints.facts import Facts
from model.checkpoints.recipe import FACTS, need_recipe, resolve_recipe
from model.checkpoints.source import Source
from model.checkpoints.statements import Said, of_pixels
from model.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Preprocessing

FILE = "preprocessor_config.json"
HALF = (0.5, 0.5, 0.5)
CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
BILINEAR, BICUBIC = 2, 3
CROP_ROUNDING: Literal["floor"] = "floor"  # image_transforms.py center_crop
RESAMPLE = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")  # in the order of Pillow's numbers

# Keys that change no pixel of an image in RGB: names, forms of input and output, segmentation, other modalities.
NO_PIXELS = """
    _processor_class _valid_processor_keys data_format device disable_grouping do_convert_rgb do_reduce_labels
    feature_extractor_type image_processor_type image_seq_length input_data_format pad_size processor_class
    reduce_labels return_tensors transformers_version
"""
WITHOUT_EFFECT = frozenset(NO_PIXELS.split())

# Steps, and the values that each needs: `validate_preprocess_arguments` in image_utils.py. null turns a step off.
STEPS = {
    "do_resize": ("size", "resample"),
    "do_center_crop": ("crop_size",),
    "do_rescale": ("rescale_factor",),
    "do_normalize": ("image_mean", "image_std"),
}

# Defaults of the processors: models/*/image_processing_pil_*.py, image_processing_backends.py.
ALL = {
    "do_resize": True,
    "default_to_square": True,
    "do_center_crop": False,
    "do_pad": False,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": HALF,
    "image_std": HALF,
}
SQUARE = {**ALL, "size": {"height": 224, "width": 224}, "resample": BICUBIC}
CROPPED = {
    **ALL,
    "size": {"shortest_edge": 224},
    "default_to_square": False,
    "resample": BICUBIC,
    "do_center_crop": True,
    "crop_size": {"height": 224, "width": 224},
    "image_mean": CLIP_MEAN,
    "image_std": CLIP_STD,
}
PROCESSORS: dict[str, dict[str, Any]] = {
    "ViT": {**SQUARE, "resample": BILINEAR},
    "DeiT": {
        **SQUARE,
        "size": {"height": 256, "width": 256},
        "do_center_crop": True,
        "crop_size": {"height": 224, "width": 224},
    },
    "Beit": {**SQUARE, "crop_size": {"height": 224, "width": 224}},
    "DINOv3ViT": {**SQUARE, "resample": BILINEAR, "image_mean": IMAGENET_MEAN, "image_std": IMAGENET_STD},
    "Siglip": {**SQUARE, "default_to_square": False},
    "Bit": CROPPED,
    "CLIP": CROPPED,
    "ViTHybrid": CROPPED,  # in transformers 4 alone: models/deprecated/vit_hybrid/image_processing_vit_hybrid.py
}


def describe_images(source: Source, facts: Facts, *, processor: str, size: tuple[int, int]) -> Preprocessing:
    """The recipe in the file. `processor` is for files that name none, `size` for a recipe that is set by hand."""
    content = _content(source)
    try:
        recipe = _recipe(content, processor)
    except ValueError as error:
        name = f"{processor}ImageProcessor"
        example = _recipe({"image_processor_type": name}, processor).resized(size)
        return need_recipe(facts, str(error), example=example, of=f"the default of {name}")
    return resolve_recipe(facts, recipe, Origin.stated(FILE))


def said_beside(source: Source) -> list[Said]:
    """What the file says of the pixels of a network that is not transformers'."""
    if not (content := _content(source)):
        return []
    try:
        recipe = _recipe(content, "")
    except ValueError as error:
        return [*of_pixels(content, of=FILE), Said("", str(error), FILE)]
    return [Said(fact, getattr(recipe, fact), FILE) for fact in FACTS] + [Said("image_size", recipe.size, FILE)]


def _content(source: Source) -> dict[str, Any]:
    """An image processor in processor_config.json comes first: models/auto/image_processing_auto.py."""
    return source.json("processor_config.json").get("image_processor") or source.json(FILE)


def _recipe(content: dict[str, Any], processor: str) -> Preprocessing:
    """Raises ValueError if the file does not contain a supported recipe."""
    if not content:
        raise ValueError(
            f'there is no {FILE} beside the weights: write it with processor.save_pretrained("FOLDER"), or download it '
            "from their source"
        )
    named = content.get("image_processor_type") or content.get("feature_extractor_type") or f"{processor}ImageProcessor"
    if not isinstance(named, str):
        raise ValueError(f"{FILE} has the image_processor_type {named}, which is not a name")
    defaults = PROCESSORS.get(re.sub(r"(ImageProcessor|FeatureExtractor)(Fast|Pil)?$", "", named))
    if defaults is None:
        raise ValueError(f"{FILE} names {named}, which is not supported")
    known = {*defaults, "crop_size"} | WITHOUT_EFFECT
    unknown = [f"{key} {value!r}" for key, value in content.items() if key not in known and not _is_off(key, value)]
    if unknown:
        raise ValueError(f"{FILE} states {', '.join(unknown)}, and it is not known what that changes")
    stated = {**defaults, **content}
    if not stated["do_resize"] or stated["do_pad"]:
        raise ValueError(f"{FILE} pads or does not resize, but all images must get the same size")
    for step, values in STEPS.items():
        if absent := [key for key in values if stated[step] and stated.get(key) is None]:
            raise ValueError(f"{FILE} has no value of {absent[0]}, which {step} needs")
    mode, resized = _size("size", stated["size"], square=stated["default_to_square"])
    crop: Literal["center", "none"] = "center" if stated["do_center_crop"] else "none"
    # (pixel * factor - mean) / std is (pixel / 255 - mean / scale) / (std / scale).
    scale = 255 * _factor(stated["rescale_factor"]) if stated["do_rescale"] else 255
    normalised = stated if stated["do_normalize"] else {"image_mean": 0, "image_std": 1}
    return Preprocessing(
        size=_size("crop_size", stated["crop_size"])[1] if crop == "center" else resized,
        resize_mode=mode,
        resize_size=resized,
        crop=crop,
        crop_rounding=CROP_ROUNDING,
        interpolation=_interpolation(stated["resample"]),
        mean=_channels("image_mean", normalised["image_mean"], scale),
        std=_channels("image_std", normalised["image_std"], scale),
    )


def _is_off(key: str, value: Any) -> bool:
    """Whether nothing is stated, or a step that is not done, such as "do_flip_channel_order": false."""
    return value is None or (value is False and key.startswith("do_"))


def _size(key: str, size: Any, *, square: bool = True) -> tuple[Literal["shortest", "squash"], tuple[int, int]]:
    """All forms that transformers has written; a single number is a square or the shorter edge."""
    match size:
        case int():
            return "squash" if square else "shortest", (size, size)
        case [int(height), int(width)]:
            return "squash", (height, width)
        case {"height": int(height), "width": int(width), **rest} if not rest:
            return "squash", (height, width)
        case {"shortest_edge": int(short), **rest} if not rest and key == "size":
            return "shortest", (short, short)
    raise ValueError(f"{FILE} has the {key} {size}, which is not supported")


def _interpolation(resample: Any) -> Any:
    known = type(resample) is int and resample in range(len(RESAMPLE))
    name = RESAMPLE[resample] if known else str(resample).lower().removesuffix("-exact")
    if name not in RESAMPLE:
        raise ValueError(f"{FILE} has the resample {resample}, which is not supported")
    return name


def _factor(value: Any) -> float:
    if not _is_number(value) or not value:
        raise ValueError(f"{FILE} has the rescale_factor {value}: expected a number such as 0.00392 that is not 0")
    return float(value)


def _channels(key: str, value: Any, scale: float) -> tuple[float, float, float]:
    """One number for all channels, or one for each of three."""
    channels = value if isinstance(value, list | tuple) else [value] * 3
    if len(channels) != 3 or not all(map(_is_number, channels)):
        raise ValueError(f"{FILE} has the {key} {value}: expected one number, or three for red, green and blue")
    red, green, blue = channels
    return red / scale, green / scale, blue / scale


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and isfinite(value)
