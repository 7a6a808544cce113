"""Names of the classes: a person's file, else the checkpoint's own, else those of the ImageNet with as many classes."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from model.checkpoints.checkpoint import CheckpointError, first_few
from model.checkpoints.imagenet import names_of, version_of

PLACE = "{}"
PROMPT = "This is a photo of {}."
NONE = "none"  # in place of a file: number the classes
UNNAMED = "numbered, as the checkpoint has no names"
NAME_OR_NUMBER = "--labels FILE names the classes, --labels none numbers them"
NAME_THEM = "--labels FILE names them."
OR_NUMBER_THEM = "If the model has other classes, name them with --labels FILE, or number them with --labels none."


class Labels(NamedTuple):
    names: tuple[str, ...]
    origin: str
    wordnet: tuple[str, ...] = ()  # ids of the synsets that the names stand for, where they are known
    advice: str = ""  # a sentence, if the names are a guess
    problem: str = ""  # why the checkpoint's names cannot be read


def choose(
    classes: int, own: Labels, *, dataset: str, given: str | None, beside: Mapping[str, Any] = MappingProxyType({})
) -> Labels:
    """The labels of a model with so many classes.

    `own` are those that the checkpoint has; `dataset` says where it names the ImageNet that it was trained on. `given`
    is a file, or "none" to number the classes. `beside` is what else may name the classes, by where it stands: it is
    taken if it can be read and names all classes, and otherwise no other names are.
    Raises CheckpointError for names that cannot be read, and for another number of names than of classes.
    """
    if given == NONE:
        return _numbered(classes, "numbered, set by hand")
    if given is not None:
        labels = from_file(Path(given))
        if len(labels.names) != classes:
            raise CheckpointError(
                f"{Path(given).name} has {len(labels.names):,} labels, the model has {classes:,} classes"
            )
        return labels
    if own.problem:
        raise CheckpointError(f"{own.problem}: {NAME_OR_NUMBER}")
    if own.names and len(own.names) != classes:
        raise CheckpointError(
            f"{own.origin} has {len(own.names):,} labels, the model has {classes:,} classes: {NAME_OR_NUMBER}"
        )
    if own.names:
        return own if own.wordnet else _readable(own.names, own.origin)
    others = {where: _read_beside(value) for where, value in beside.items()}
    others = {where: names for where, names in others.items() if not _made_up(names)}
    fitting = {where: names for where, names in others.items() if len(names) == classes}
    if len({*fitting.values()}) == 1:
        return _readable(*next((names, where) for where, names in fitting.items()))
    if others:
        return _numbered(classes, f"numbered, as {first_few([*others])} cannot be read as their names")._replace(
            advice=f"The checkpoint may have names of its own, in {first_few([*others])}. {NAME_THEM}"
        )
    if version := version_of(classes):
        names = names_of(version.wordnet)
        assert names
        origin = f"{version.name}, {dataset or 'by the number of classes'}"
        return Labels(names, origin, version.wordnet, advice="" if dataset else OR_NUMBER_THEM)
    return _numbered(classes, UNNAMED)._replace(advice=NAME_THEM)


def from_file(path: Path) -> Labels:
    """The labels in a file, WordNet ids as names. Raises CheckpointError for a file that cannot be read."""
    return _readable(read(path), path.name)


def read(path: Path) -> tuple[str, ...]:
    """The labels in a file, in the order of the classes. Raises CheckpointError, with the reason.

    The content is one label per line; or JSON: a list, an object of indices and labels either way round, or the object
    of Keras' imagenet_class_index.json, whose labels are pairs of a WordNet id and a name; or, in a file that ends in
    .csv, a table with a column `label` and perhaps one `index`.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise CheckpointError(f"{path} cannot be read as labels: {reason}") from None
    try:
        if path.suffix.lower() == ".csv":
            names = _from_csv(text)
        elif text.lstrip()[:1] in ("[", "{"):
            names = _from_json(json.loads(text))
        else:
            names = text.rstrip().split("\n") if text.strip() else []
            parts = [line.split(maxsplit=1) for line in names]
            if all(len(part) == 2 for part in parts):  # else a number is the label
                _check_order("numbers", [part[0].rstrip(":,;.") for part in parts])
        none_empty(names)
    except (ValueError, csv.Error, RecursionError) as error:
        raise CheckpointError(f"{path.name} cannot be read as labels: {error}") from None
    return tuple(" ".join(name.split()) for name in names)


def check_prompts(prompts: Iterable[str]) -> None:
    """Raises CheckpointError for a sentence without a place for the label."""
    if wrong := next((prompt for prompt in prompts if PLACE not in prompt), None):
        raise CheckpointError(f'--prompt "{wrong}" has no {PLACE} in place of the label, as in "{PROMPT}"')


def none_empty(names: Sequence[str]) -> None:
    """Raises ValueError for a name without a letter."""
    if empty := [i for i, name in enumerate(names) if not name.strip()]:
        raise ValueError(f"label {empty[0]} is empty")


def by_index(names: Any) -> tuple[str, ...]:
    """The names in an object of indices and names. Raises ValueError, with the reason, for anything else."""
    if not isinstance(names, dict):
        raise ValueError(f"it is not an object of indices and names, but {type(names).__name__}")
    ordered = _in_order((index, _name(label)) for index, label in names.items())
    none_empty(ordered)
    return tuple(ordered)


def _from_csv(text: str) -> list[str]:
    rows = csv.DictReader(StringIO(text, newline=""), strict=True)
    columns = {name.strip().lower(): name for name in rows.fieldnames or ()}
    if "label" not in columns:
        raise ValueError(f"its first line is {', '.join(columns) or 'empty'}, and no column is called label")
    table = []
    for row in rows:
        if any(map(str.strip, row.pop(None, ()))):
            raise ValueError(
                f"line {rows.line_num} has more cells than the first line. A name with a comma stands in quotes"
            )
        table.append(row)
    cells = {name: [row[column] or "" for row in table] for name, column in columns.items()}
    labels = cells.pop("label")
    if "index" in cells:
        return _in_order(zip(cells["index"], labels, strict=True))
    for name, numbers in cells.items():
        _check_order(f"the column {name}", numbers)
    return labels


def _check_order(what: str, numbers: Sequence[str]) -> None:
    """Raises ValueError if each line has a number of its own, without a gap, and the lines are in another order."""
    if all(number.strip().isdecimal() for number in numbers):
        indices = [*map(int, numbers)]
        least = min(indices, default=0)
        if least in (0, 1) and sorted(indices) == [*range(least, least + len(indices))] != indices:
            raise ValueError(
                f"its lines are not in the order of {what} in them. If these are indices, sort the lines by them; if "
                "not, write the labels as a list in JSON"
            )


def _from_json(content: Any) -> list[str]:
    if isinstance(content, list):
        return [_name(label) for label in content]
    indices = all(type(value) is int for value in content.values())  # of labels that may be numbers: folders 0, 1, 10
    if not indices and all(key.isdecimal() for key in content):
        return _in_order((key, _name(label)) for key, label in content.items())
    return _in_order((index, label) for label, index in content.items())


def _name(label: Any) -> str:
    match label:
        case str():
            return label
        case int() | float():
            return str(label)
        case [str(), str(name)]:
            return name
    raise ValueError(f"{label!r} is not a label")


def _in_order(pairs: Iterable[tuple[Any, str]]) -> list[str]:
    """Labels by index. Raises ValueError unless the indices are 0, 1, 2 and so on, in any order."""
    labels: dict[int, str] = {}
    for index, label in pairs:
        if not isinstance(index, int | str) or isinstance(index, bool) or not str(index).strip().isdecimal():
            raise ValueError(f"{index!r} is not an index")
        number = int(index)
        if number in labels:
            raise ValueError(f"index {number} is there twice")
        labels[number] = label
    for i in range(len(labels)):
        if i not in labels:
            raise ValueError(f"there is no label of index {i}")
    return [labels[i] for i in range(len(labels))]


def _read_beside(names: Any) -> tuple[str, ...]:
    """None where they cannot be read."""
    try:
        read = _from_json({str(key): name for key, name in names.items()} if isinstance(names, dict) else [*names])
        none_empty(read)
    except (ValueError, TypeError):
        return ()
    return tuple(read)


def numbered(classes: int) -> tuple[str, ...]:
    """The names of classes that have none."""
    return tuple(f"class {i}" for i in range(classes))


def _made_up(names: tuple[str, ...]) -> bool:
    """Whether transformers has made them up."""
    return bool(names) and names == tuple(f"LABEL_{i}" for i in range(len(names)))


def _readable(names: tuple[str, ...], origin: str) -> Labels:
    """WordNet ids as names; other labels as they are."""
    readable = names_of(names)
    return Labels(names, origin) if readable is None else Labels(readable, f"{origin}, as WordNet ids", names)


def _numbered(classes: int, origin: str) -> Labels:
    return Labels(numbered(classes), origin)
