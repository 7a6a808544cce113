"""What a file says beside its tensors: in the dictionaries of a pickle, or in the metadata of safetensors.

Training scripts save the pixels that they train with under names of their own: `args`, `hyper_parameters`, `config`.
"""

import argparse
import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, get_args

import yaml

from model.checkpoints.stand_ins import Array
from model.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Interpolation

DEEPEST = 3  # dictionaries around what is said, as meta.dataset_meta.classes of mmpretrain has two
# Arguments of timm's classes, which its loader reads; and what is measured.
OTHERS = {"model_kwargs", "model_args", "metrics", "metric", "results", "scores", "history"}
# Facts by the names of keys, without underscores and in lower case; and the names that mean and std have.
OF = "(im(g|age)|pixel|rgb|channel|norm(al(i[sz]e|i[sz]ation))?|input|data(set)?|train)?s?"
CHANNELS = re.compile(rf"{OF}(?P<fact>mean|std)s?(rgb)?")
KEYS = {
    **dict.fromkeys(("inputsize", "imgsize", "imagesize"), "image_size"),
    **dict.fromkeys(("croppct", "evalcropratio"), "crop_pct"),
    "interpolation": "interpolation",
}
FLAG = "imagenet_default_mean_and_std"  # of BEiT's scripts, and of those that were made from them
HALF = (0.5, 0.5, 0.5)
BYTES = 255  # pixels are from 0 to it where a mean is above 1
FILES = ("args.yaml", "args.json", "train_args.json", "hparams.yaml")  # JSON is YAML too


class Said(NamedTuple):
    fact: str
    value: Any  # None where it cannot be read
    where: str  # such as "args.mean of the file"


def entries(content: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Everything under names, with the names around it and its own."""
    if isinstance(content, argparse.Namespace):
        content = vars(content)
    if not isinstance(content, Mapping) or len(place) > DEEPEST:
        return
    for key, value in content.items():
        if isinstance(key, str):
            yield (*place, key), value
            yield from entries(value, (*place, key))


def beside(folder: Path) -> tuple[Said, ...]:
    """What scripts have written of pixels into files beside the weights, as timm's train.py does. A file that cannot be
    read as YAML says nothing.
    """
    found: tuple[Said, ...] = ()
    for name in FILES:
        with suppress(OSError, ValueError, yaml.YAMLError):
            if (file := folder / name).is_file():
                found += of_pixels(yaml.safe_load(file.read_text(encoding="utf-8")), of=name)
    return found


def of_pixels(content: Any, *, of: str) -> tuple[Said, ...]:
    """What is said of pixels. A value of None says nothing: scripts write it for what was not given."""
    found = []
    for place, value in entries(content):
        where = f"{'.'.join(place)} of {of}"
        if place[-1] == FLAG and isinstance(value, bool):
            both = (IMAGENET_MEAN, IMAGENET_STD) if value else (HALF, HALF)
            found += [Said(fact, channels, where) for fact, channels in zip(("mean", "std"), both, strict=True)]
        key = place[-1].replace("_", "").lower()
        fact = match["fact"] if (match := CHANNELS.fullmatch(key)) else KEYS.get(key)
        if fact is None or OTHERS & {*place}:
            continue
        if isinstance(value, Array):
            found.append(Said(fact, None, where))
        elif (read := _read(fact, value)) is not None:
            found.append(Said(fact, read, where))
    if any(one.fact == "mean" and one.value and max(one.value) > 1 for one in found):
        found = [_of_bytes(one) if one.fact in ("mean", "std") else one for one in found]
    return tuple(found)


def _read(fact: str, value: Any) -> Any:
    """The value as the fact has it; None if it cannot be meant."""
    if fact == "interpolation":
        return next((one for one in get_args(Interpolation) if one == str(value).lower()), None)
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return None
    if getattr(value, "ndim", None) == 1:  # a tensor; this file is read before PyTorch is imported
        value = value[:4].tolist()
    parts = value if isinstance(value, list | tuple) else [value]
    if not parts or not all(type(part) in (int, float) and 0 <= part < 2**20 for part in parts):
        return None
    match fact, [*parts]:
        case (("mean" | "std"), [red, green, blue]) if fact == "mean" or min(parts) > 0:
            return float(red), float(green), float(blue)
        case "crop_pct", [share] if 0 < share <= 1:
            return float(share)
        case "image_size", [int(side)] if side:
            return side, side
        case "image_size", [*_, int(height), int(width)] if height and width:  # channels may come first
            return height, width
    return None


def _of_bytes(one: Said) -> Said:
    return one._replace(
        value=one.value and tuple(part / BYTES for part in one.value), where=f"{one.where}, divided by {BYTES}"
    )
