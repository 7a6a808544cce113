"""Preprocessing as facts: found in a file, fixed by a library, or given by a person, and checked in every case."""

from collections.abc import Mapping
from typing import Any, Literal

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.facts import Facts
from model.preprocessing import Preprocessing

CropRounding = Literal["half_even", "floor"]
EXAMPLE: Mapping[str, Any] = {
    "resize_mode": "shortest",
    "resize_size": (256, 256),
    "crop": "center",
    "interpolation": "bilinear",
    "mean": (0.485, 0.456, 0.406),
    "std": (0.229, 0.224, 0.225),
}


def note_recipe(facts: Facts, found: Preprocessing, origin: str) -> Preprocessing:
    """What was found, or what a person has set in its place; another image size scales the resize with it.

    Raises CheckpointError for a recipe that does not give pictures of one size.
    """
    scaled = found.resized(facts.note("image_size", found.size, origin))
    return _checked(
        Preprocessing(
            size=scaled.size,
            resize_mode=facts.note("resize_mode", scaled.resize_mode, origin),
            resize_size=facts.note("resize_size", scaled.resize_size, origin),
            crop=facts.note("crop", scaled.crop, origin),
            crop_rounding=scaled.crop_rounding,
            interpolation=facts.note("interpolation", scaled.interpolation, origin),
            mean=facts.note("mean", scaled.mean, origin),
            std=facts.note("std", scaled.std, origin),
        )
    )


def need_recipe(facts: Facts, why: str, *, size: tuple[int, int], crop_rounding: CropRounding) -> Preprocessing:
    """What a person has set, for pictures of the `size` that the network is for. Raises CheckpointError with `why`."""
    if flags := facts.missing_flags(EXAMPLE):
        raise CheckpointError(f"{why}, or give it by hand, such as {flags}")
    values = dict(zip(EXAMPLE, facts.need_all(EXAMPLE), strict=True))
    size = facts.note("image_size", size, "the network")
    return _checked(Preprocessing(size=size, crop_rounding=crop_rounding, **values))


def _checked(recipe: Preprocessing) -> Preprocessing:
    resized = recipe.resize_size  # "shortest" covers it
    if recipe.crop == "none" and (recipe.resize_mode == "shortest" or resized != recipe.size):
        raise CheckpointError(
            f"a {recipe.resize_mode} resize to {resized} without a crop does not give every picture {recipe.size}"
        )
    if any(side > available for side, available in zip(recipe.size, resized, strict=True)):
        raise CheckpointError(
            f"a crop of {recipe.size} is larger than the picture it is cut from, resized to {resized}"
        )
    return recipe
