"""timm's preprocessing: `pretrained_cfg` of a config.json, or what timm has published for the architecture.

The recipe is `transforms_imagenet_eval` of timm's data/transforms_factory.py.
"""

import math
from collections.abc import Sequence
from typing import Any

from model.checkpoints.checkpoint import CheckpointError, Origin
from model.checkpoints.facts import Facts
from model.checkpoints.families.timm_architectures import table
from model.checkpoints.recipe import checked
from model.checkpoints.statements import Said
from model.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Preprocessing

RESIZE_MODES = {"center": "shortest", "squash": "squash"}
# timm's, for what a pretrained_cfg leaves out (models/_pretrained.py).
DEFAULTS = {
    "crop_pct": 0.875,
    "crop_mode": "center",
    "interpolation": "bicubic",
    "mean": IMAGENET_MEAN,
    "std": IMAGENET_STD,
}
OF_ROOT = {"architecture", "num_classes", "label_names", "label_descriptions"}  # beside pretrained_cfg too


def preprocessing(
    facts: Facts,
    size: tuple[int, int],
    stated: dict[str, Any],
    published: dict[str, dict[str, Any]],
    *,
    by_tag: Origin,
) -> Preprocessing:
    """The recipe for an input of `size`; `by_tag` is the origin of the published one. What a script says goes before
    it, as in `resolve_data_config` of timm's data/config.py.

    Raises CheckpointError if it is ambiguous or not supported.
    """

    def value_of(fact: str, name: str) -> tuple[Any, Origin]:
        own = stated.get(name)  # 0 is not given
        known = [Said(name, own, "config.json")] if own and name == "crop_pct" else []  # others are compared later
        said = (
            None
            if fact in facts.overrides
            else facts.said_of(name, *known) or (fact == "resize_mode" and facts.said_of(fact))
        )
        if own:
            return own, Origin.stated("config.json")
        if said:
            return said.value, Origin.stated(said.where)
        if stated.keys() & {*table()["pretrained_cfg"]} - OF_ROOT:
            return DEFAULTS[name], Origin.stated("timm's default")
        values = {tag: recipe[name] for tag, recipe in published.items()}
        first = next(iter(values.values()))
        if any(value != first for value in values.values()) and fact not in facts.overrides:
            raise CheckpointError(
                f"{name} depends on where the weights come from: give --set architecture= with one of "
                f"{', '.join(values)}, or --set {fact}= with that of the training"
            )
        return first, by_tag._replace(where=f"timm, {' and '.join(values)}")

    crop_pct, crop_origin = value_of("resize_size", "crop_pct")
    crop_mode, mode_origin = value_of("resize_mode", "crop_mode")
    scaled = tuple(math.floor(side / crop_pct) for side in size)
    resized = facts.said_of("resize_size")
    if resized and "image_size" in facts.overrides:
        raise CheckpointError(
            f"{resized.where} says a resize for another image size than that of --set image_size=: give --set "
            "resize_size= too"
        )
    mode = facts.resolve("resize_mode", RESIZE_MODES.get(crop_mode, crop_mode), mode_origin)
    if mode not in RESIZE_MODES.values():
        raise CheckpointError(
            f"crop_mode {mode!r} is not supported; replace it with --set resize_mode=squash or shortest"
        )
    resize = scaled, crop_origin._replace(where=f"{crop_origin.where}: crop_pct {crop_pct}")
    if resized:
        resize = resized.value, Origin.stated(resized.where)
    recipe = Preprocessing(
        size=size,
        resize_mode=mode,
        resize_size=facts.resolve("resize_size", *resize),
        crop=facts.resolve("crop", "center", mode_origin),
        interpolation=facts.resolve("interpolation", *value_of("interpolation", "interpolation")),
        mean=_channels(facts, "mean", *value_of("mean", "mean")),
        std=_channels(facts, "std", *value_of("std", "std")),
    )
    return checked(recipe, facts)


def _channels(facts: Facts, name: str, values: float | Sequence[float], origin: Origin) -> tuple[float, float, float]:
    each = values if isinstance(values, Sequence) else [values]
    if len(each) not in (1, 3):  # timm takes one for all too
        raise CheckpointError(f"{name} has {len(each)} numbers ({origin.where}): supported are red, green and blue")
    red, green, blue = map(float, each if len(each) == 3 else [*each] * 3)
    return facts.resolve(name, (red, green, blue), origin)
