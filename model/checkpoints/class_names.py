"""Names of the classes that people save beside weights: where they stand in a pickle, in JSON, and in a folder."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from model.checkpoints.statements import entries

LABEL = "(class|label|category)"
KEY = re.compile(  # without underscores, in lower case
    f"{LABEL}(names?|list|map)|classes|labels|categories|names"
    f"|{LABEL}(to|2)(idx|id|index)|(idx|id|i|index)(to|2){LABEL}(s|names?)?"
)
STEMS = "labels classes names class_names label_names class_to_idx idx_to_class label_map id2label"
FILES = tuple(f"{stem}{suffix}" for stem in STEMS.split() for suffix in (".txt", ".json"))
PLAIN = (bool, int, float, type(None))


def found_in(content: Any, *, of: str) -> dict[str, Any]:
    """What may be names of classes, by where it stands, such as "meta.CLASSES of the file"."""
    return {
        f"{'.'.join(place)} of {of}": listed
        for place, value in entries(content)
        if KEY.fullmatch(place[-1].replace("_", "").lower()) and _has_names(listed := _listed(value))
    }


def files_in(folder: Path) -> dict[str, Path]:
    """Files that may have names of classes, by name."""
    return {name: path for name in FILES if (path := folder / name).is_file()}


def _listed(value: Any) -> Any:
    """The content of a text, as metadata have it: JSON, or names with commas between."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        parts = [part.strip() for part in value.split(",")]
        return parts if len(parts) > 1 else None


def _has_names(value: Any) -> bool:
    """Whether there is text in it, which a list of numbers and a state dict do not have."""
    if isinstance(value, Mapping):
        parts = [*value, *value.values()]
        nested = any(isinstance(one, Mapping) or hasattr(one, "dtype") for one in parts)  # dictionaries and tensors
        return any(isinstance(one, str) for one in parts) and not nested
    if isinstance(value, list | tuple):
        return any(isinstance(one, str) or (isinstance(one, Mapping) and _has_names(one)) for one in value)
    return not isinstance(value, PLAIN) and not hasattr(value, "dtype")  # an array of NumPy, which is not read
