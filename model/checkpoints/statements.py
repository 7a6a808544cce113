"""What a file says beside its tensors: in the dictionaries of a pickle, in the metadata of safetensors, and in files
beside the weights. Training scripts write it under names of their own: `args`, `hyper_parameters`, `config`.

What is understood becomes a fact. What is of pixels and is not understood is said too, under no fact, and so is named.
"""

import argparse
import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
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
    "cropmode": "resize_mode",
    **dict.fromkeys(("resizesize", "valresizesize"), "resize_size"),  # the second of torchvision's train.py
    "valcropsize": "image_size",
}
WORDS = {"interpolation", "resize_mode"}
EMPTY: tuple[Any, ...] = (None, "", [], ())
MODES = {"center": "shortest", "squash": "squash"}  # timm's names
TRANSFORMS = "transforms?|preprocess(ing)?|normali[sz](e|er|ation)|augmentations?"
WHEN = "(val(id(ation)?)?|test|eval|image|img|input)?"
OF_PIXELS = re.compile(rf"{WHEN}({TRANSFORMS}|(resize|crop)(size|mode)?|resample)")
# As torchvision prints it.
STEP = re.compile(r"Normalize\(\s*mean=(?P<mean>[\[(].*?[\])]),\s*std=(?P<std>[\[(].*?[\])])[^()]*\)", re.DOTALL)
NETWORK = re.compile(r"(timm)?(arch(itecture)?|model(name|arch)?|backbone(name)?|encoder(name)?)")
FLAG = "imagenet_default_mean_and_std"  # of BEiT's scripts, and of those that were made from them
HALF = (0.5, 0.5, 0.5)
BYTES = 255  # pixels are from 0 to it where a mean is above 1
FILES = ("args.yaml", "args.json", "train_args.json", "hparams.yaml")  # JSON is YAML too
MOST_SHOWN = 200  # characters


class Said(NamedTuple):
    fact: str  # empty where it is not understood
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
            yield from entries(_opened(value, pixels=_is_of_pixels((key,))), (*place, key))


def _opened(value: Any, *, pixels: bool) -> Any:
    """The dictionary that a value is in another form: JSON, a printed transform, or, under a name that is of pixels, a
    pair of mean and std.
    """
    match value:
        case str() if step := STEP.search(value):
            return step.groupdict()
        case str() if value[:1] == "{":
            with suppress(ValueError, RecursionError):
                return json.loads(value)
        case [[*mean], [*std]] if pixels and len(mean) == len(std) == len(HALF):
            return {"mean": mean, "std": std}
    return value


def beside(folder: Path) -> Iterator[tuple[Any, str]]:
    """The content of files that scripts have written beside the weights, as timm's train.py does, and their names. A
    file that cannot be read as YAML says nothing.
    """
    for name in FILES:
        with suppress(OSError, ValueError, yaml.YAMLError):
            if (file := folder / name).is_file():
                yield yaml.safe_load(file.read_text(encoding="utf-8")), name


def arguments(content: Any) -> dict[str, Any]:
    """Those of the command line of the script that wrote the file."""
    given = content.get("args") if isinstance(content, Mapping) else None
    given = vars(given) if isinstance(given, argparse.Namespace) else given
    return dict(given) if isinstance(given, Mapping) else {}


def networks(content: Any) -> list[str]:
    """What a script calls its network, without timm's name before it."""
    named = [value for place, value in entries(content) if NETWORK.fullmatch(_plain(place)) and isinstance(value, str)]
    return [re.sub(r"^(hf[-_]hub:)?timm/", "", name) for name in named]


def of_pixels(content: Any, *, of: str) -> tuple[Said, ...]:
    """What is said of pixels. An empty value says nothing, because scripts write it for what was not given."""
    found: list[Said] = []
    for place, value in entries(content):
        where, key = f"{'.'.join(place)} of {of}", _plain(place)
        if place[-1] == FLAG and isinstance(value, bool):
            both = (IMAGENET_MEAN, IMAGENET_STD) if value else (HALF, HALF)
            found += [Said(fact, channels, where) for fact, channels in zip(("mean", "std"), both, strict=True)]
        fact = match["fact"] if (match := CHANNELS.fullmatch(key)) else KEYS.get(key, "")
        if OTHERS & {*place} or not (fact or _is_of_pixels(place)) or value in EMPTY:
            continue
        read = _read(fact, value)
        if fact in WORDS and read is None:
            where += f" ({value})"
        if read is not None or (fact and (isinstance(value, list | tuple | Array) or fact in WORDS)):
            found.append(Said(fact, read, where))
        elif shown := _shown(value):
            found.append(Said("", shown, where))
    if any(one.fact == "mean" and one.value and max(one.value) > 1 for one in found):
        found = [_of_bytes(one) if one.fact in ("mean", "std") else one for one in found]
    return tuple(found)


def not_used(said: Iterable[Said], used: Iterable[str]) -> str:
    """A sentence on what is said and is no fact that is `used`; empty without any. A crop_pct is in the resize."""
    left = [f"{one.where} ({one.value})" for one in said if one.fact not in {*used, "crop_pct"}]
    return f"Said and not used: {'; '.join(left)}." if left else ""


def _is_of_pixels(place: tuple[str, ...]) -> bool:
    return bool(OF_PIXELS.fullmatch(_plain(place)))


def _plain(place: tuple[str, ...]) -> str:
    return place[-1].replace("_", "").lower()


def _shown(value: Any) -> str:
    """A value without what is read of it; empty if nothing is left."""
    understood = not isinstance(value, str) and isinstance(_opened(value, pixels=True), Mapping)
    if understood or hasattr(value, "dtype"):  # a tensor, too
        return ""
    text = " ".join(STEP.sub("", str(value)).split())
    return text[:MOST_SHOWN] if re.search(r"\w", text) else ""


def _read(fact: str, value: Any) -> Any:
    """The value as the fact has it; None if it cannot be meant."""
    if fact == "interpolation":
        return next((one for one in get_args(Interpolation) if one == str(value).lower()), None)
    if fact == "resize_mode":
        return MODES.get(str(value).lower())
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return None
    if getattr(value, "ndim", 0):  # a tensor; this file is read before PyTorch is imported
        value = value.reshape(-1)[:4].tolist()
    parts = [*value] if isinstance(value, list | tuple) else [value]
    if not parts or not all(type(part) in (int, float) and 0 <= part < 2**20 for part in parts):
        return None
    match fact, parts:
        case (("mean" | "std"), [one]) if isinstance(value, list | tuple) and (fact == "mean" or one > 0):
            return (float(one),) * 3  # timm's train.py takes one for all channels
        case (("mean" | "std"), [red, green, blue]) if fact == "mean" or min(parts) > 0:
            return float(red), float(green), float(blue)
        case "crop_pct", [share] if 0 < share <= 1:
            return float(share)
        case (("image_size" | "resize_size"), [int(side)]) if side:
            return side, side
        case (("image_size" | "resize_size"), [*_, int(height), int(width)]) if (
            height and width
        ):  # channels may come first
            return height, width
    return None


def _of_bytes(one: Said) -> Said:
    return one._replace(
        value=one.value and tuple(part / BYTES for part in one.value), where=f"{one.where}, divided by {BYTES}"
    )
