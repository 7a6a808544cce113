"""Names of the classes that training scripts save beside weights: where they stand in a pickle, or in config.json."""

import argparse
import re
from collections.abc import Iterator
from typing import Any

from torch import Tensor

from model.checkpoints.pickles import StandIn

DEEPEST = 3  # dictionaries around them, as meta.dataset_meta.classes of mmpretrain has two
LABEL = "(class|label|category)"
KEY = re.compile(  # without underscores, in lower case
    f"{LABEL}(names?|list)|classes|labels|categories|{LABEL}(to|2)(idx|id|index)|(idx|id|i|index)(to|2){LABEL}(names?)?"
)


def found_in(content: Any, *, of: str) -> dict[str, Any]:
    """What may be names of classes, by where it stands, such as "meta.CLASSES of the file"."""
    return {f"{'.'.join(where)} of {of}": value for where, value in _found(content, ())}


def _found(content: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(content, argparse.Namespace):
        content = vars(content)
    if not isinstance(content, dict) or len(place) > DEEPEST:
        return
    for key, value in content.items():
        if not isinstance(key, str):
            continue
        if KEY.fullmatch(key.replace("_", "").lower()) and _has_names(value):
            yield (*place, key), value
        else:
            yield from _found(value, (*place, key))


def _has_names(value: Any) -> bool:
    """Whether there is text in it, which a list of numbers and a state dict do not have."""
    if isinstance(value, dict):
        texts = [*value, *value.values()]
        return any(isinstance(one, str) for one in texts) and not any(isinstance(one, Tensor | dict) for one in texts)
    if isinstance(value, list | tuple):
        return any(isinstance(one, str) for one in value)
    return isinstance(value, StandIn)  # an array of NumPy, whose content is not read
