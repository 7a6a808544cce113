"""Files with names of classes, in the order of the classes.

Lines, tables and objects may number their names. These numbers are indices if they are 0, 1, 2 and so on, in any order.
Numbers from 1 are accepted only where the lines are in that order: else the model may count in another one.
"""

import ast
import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import yaml

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.class_names import found_in
from model.checkpoints.imagenet import names_of

YAML = (".yaml", ".yml")
TAKE_OUT = "If so, take it out; if not, write the labels as a list in JSON"
WAY_OUT = "If these are indices, sort the lines by them; if not, write the labels as a list in JSON"
NUMBER = r"[\"'(\[<#]?(?P<number>-?\d+)(?:\.0*)?[\"')\]>]?"
BETWEEN = r"(?:\s*(?:[,;:=|\t]|[-=]>)\s*|\s+(?:[-#\u2013\u2014]\s+)?)"
OF_LINES = (  # where the number of a line stands
    re.compile(rf"(?:(?:class|label|index|id)[ _]?)?{NUMBER}{BETWEEN}(?P<name>.*\S)", re.IGNORECASE),
    re.compile(rf"(?P<name>.*?\S){BETWEEN}{NUMBER}"),
)
WORDNET = re.compile(r"(n\d{8})\b[\s,;:]*(.*)")
# What columns are called, or keys in a list of objects.
INDEX = re.compile(r"((class|label|category)[ _]?)?(index|idx|id|number)|label|class|category")
PBTXT = re.compile(r"\s*item\s*\{")
NAMES = ("label", "name", "class_name", "class", "category")


def read(path: Path) -> tuple[str, ...]:
    """The labels in a file. Raises CheckpointError, with the reason.

    The content is one label per line; or JSON, a literal of Python or YAML: a list, an object of indices and labels
    either way round, or one with such names in it; or, in a file that ends in .csv, a table with a column `label`.
    """
    if path.exists() and not path.is_file():  # a FIFO would never end
        raise CheckpointError(f"{path} cannot be read as labels: it is not a file")
    try:
        names = _parsed(path.read_text(encoding="utf-8-sig"), path.suffix.lower())
        none_empty(names)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise CheckpointError(f"{path} cannot be read as labels: {reason}") from None
    except (ValueError, csv.Error, RecursionError) as error:
        raise CheckpointError(f"{path.name} cannot be read as labels: {error}") from None
    return tuple(" ".join(name.split()) for name in names)


def names_in(content: Any) -> tuple[str, ...]:
    """The names in a list, in an object of indices and names, or somewhere in an object. Raises ValueError."""
    if isinstance(content, list | tuple):
        return tuple(_from_list(content))
    if not isinstance(content, Mapping):
        raise ValueError(f"it has {type(content).__name__} in place of names")
    try:
        return tuple(_from_object({str(key): value for key, value in content.items()}))
    except ValueError:
        found = found_in(content, of="it")
        read = {names_in(value) for value in found.values()}
        if len(read) > 1:
            raise ValueError(f"{' and '.join(found)} differ") from None
        if read:
            return read.pop()
        raise


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


def _parsed(text: str, suffix: str) -> Sequence[str]:
    if PBTXT.match(text):
        raise ValueError("it is a label map in pbtxt. Write one label per line, that of index 0 first")
    lines = [line.strip() for line in text.rstrip().split("\n")] if text.strip() else []
    separator = "," if suffix == ".csv" else _separator(lines)
    if separator:
        return _from_csv(text, separator)
    if suffix in YAML or re.search(r"^\s*names\s*:", text, re.MULTILINE):
        return names_in(_yaml(text))
    if text.lstrip()[:1] in ("[", "{"):
        return names_in(_literal(text))
    commented = [line for line in lines if line.startswith("#")]
    heads = commented if len(commented) < len(lines) else []
    heads += [line for line in lines[:1] if lines[1:] and re.sub(" ", "_", line.lower()) in NAMES]
    if heads:
        raise ValueError(f"{heads[0]!r} may be no label but a comment, or the name of a column. {TAKE_OUT}")
    return _from_lines(lines)


def _separator(lines: Sequence[str]) -> str:
    """What stands between the columns of a table, by a first line of names of columns; empty if it is none."""
    for separator in ",;\t":
        columns = [name.strip().lower() for name in lines[0].split(separator)] if lines[1:] else []
        if len(columns) > 1 and all(name in NAMES or INDEX.fullmatch(name) for name in columns):
            return separator
    return ""


def _yaml(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None


def _literal(text: str) -> Any:
    """JSON, or a list or dictionary as Python prints it."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        try:
            return ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError):
            several = "it has several values, one after the other" if error.msg == "Extra data" else error
            raise ValueError(f"{several}. Labels in JSON are a list, or an object of indices and labels") from None


def _from_lines(lines: Sequence[str]) -> Sequence[str]:
    """The names in lines, without the marks that all lines have: numbers, quotes, and those of a list."""
    if lines and all(synsets := [WORDNET.fullmatch(line) for line in lines]):
        return _of_synsets(*zip(*(match.groups() for match in synsets if match), strict=True))
    if all(re.match(r"[-*\u2022]\s", line) for line in lines):
        lines = [line[1:].strip() for line in lines]
    if len(lines) > 1 and all(line.endswith(",") for line in lines[:-1]):
        lines = [line.removesuffix(",") for line in lines]
    found = []
    for form in OF_LINES:
        matches = [match for line in lines if (match := form.fullmatch(line))]
        names = _unquoted([match["name"] for match in matches])
        odd = [line for line in lines if not form.fullmatch(line)]
        if len(odd) == 1 < len({*names}) and _ordered(
            "numbers", [int(one["number"]) for one in matches], names, sure=True
        ):
            raise ValueError(f"{odd[0]!r} has no number, which all other lines have. {TAKE_OUT}")
        if odd or len(set(names)) == 1 < len(names):  # a part of the names, as in "thing 0"
            continue
        ordered = _ordered("numbers", [int(match["number"]) for match in matches], names, sure=True)
        if ordered is not None and len(set(names)) == len(names):
            found.append(ordered)
    if len({*map(tuple, found)}) > 1:
        raise ValueError(f"its lines have two numbers each. {WAY_OUT}")
    if not found:
        _check_runs(lines)
    return found[0] if found else _unquoted(lines)


def _check_runs(lines: Sequence[str]) -> None:
    """Raises ValueError if lines have numbers somewhere that may be indices, and are in another order."""
    runs = [re.findall(r"\d+", line) for line in lines]
    for place in (0, -1) if all(runs) else ():
        numbers = [of_line[place] for of_line in runs]
        if len({line.replace(number, "", 1) for line, number in zip(lines, numbers, strict=True)}) > 1:
            _ordered("numbers", [*map(int, numbers)], lines, sure=False)


def _of_synsets(ids: Sequence[str], others: Sequence[str]) -> Sequence[str]:
    """Ids, or what stands beside them if they are not known."""
    if any(others) and [*ids] != sorted({*ids}):  # such as ImageNet's devkit, whose order no library of PyTorch has
        raise ValueError(f"its lines are not in the order of their WordNet ids. {WAY_OUT}")
    return ids if names_of(ids) or not all(others) else _from_lines(others)


def _from_csv(text: str, separator: str) -> Sequence[str]:
    rows = csv.reader(StringIO(text, newline=""), strict=True, skipinitialspace=True, delimiter=separator)
    columns = [name.strip().lower() for name in next(rows, [])]
    table = []
    for row in rows:
        if any(map(str.strip, row[len(columns) :])):
            raise ValueError(
                f"line {rows.line_num} has more cells than the first line. A name with a comma stands in quotes"
            )
        if row:
            table.append([*row, *[""] * len(columns)][: len(columns)])
    if not {*columns} & {*NAMES}:
        raise ValueError(f"its first line is {', '.join(columns) or 'empty'}, and no column is called label")
    return _of_table({name: [row[place] for row in table] for place, name in enumerate(columns)})


def _of_table(cells: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """The names in the columns of a table, in the order of a column of indices, if it has one."""
    numbers = {name: [*map(_number, column)] for name, column in cells.items()}
    called = [name for name in NAMES if name in cells]
    chosen = next((name for name in called if None in numbers[name]), called[0])
    found = []
    for name in cells.keys() - {chosen}:
        sure, whole = bool(INDEX.fullmatch(name)), [number for number in numbers[name] if number is not None]
        if len(whole) == len(cells[name]):
            ordered = _ordered(f"the column {name}", whole, cells[chosen], sure=sure)
            found += [ordered] if sure and ordered is not None else []
        elif sure and whole:
            raise ValueError(f"the column {name} has {cells[name][numbers[name].index(None)]!r} in place of a number")
    if len({*map(tuple, found)}) > 1:
        raise ValueError(f"its columns of indices differ. {WAY_OUT}")
    return found[0] if found else cells[chosen]


def _ordered(what: str, numbers: Sequence[int], names: Sequence[str], *, sure: bool) -> Sequence[str] | None:
    """Names in the order of numbers that count them, or None if these do not.

    Raises ValueError if the numbers may be indices and the names are in another order: if they are `sure` to be
    indices, unless they count from 0; else if they count from 0 or 1.
    """
    least = min(numbers, default=0)
    if least < 0:
        raise ValueError(f"{least} is no index. {WAY_OUT}")
    counts = least in (0, 1) and sorted(numbers) == [*range(least, least + len(names))]
    if [*numbers] == sorted(numbers):
        return names if counts else None
    if counts and sure and least == 0:
        return [name for _, name in sorted(zip(numbers, names, strict=True))]
    if counts or (sure and (len({*numbers}) == len(names) or max(numbers) <= len(names))):
        raise ValueError(f"its lines are not in the order of {what} in them. {WAY_OUT}")
    return None


def _from_list(content: Sequence[Any]) -> Sequence[str]:
    if content and all(isinstance(part, Mapping) for part in content):
        keys = {str(key).lower(): key for key in content[0]}
        if {*keys} & {*NAMES}:
            return _of_table({name: [_name(part.get(key)) for part in content] for name, key in keys.items()})
    return [_name(label) for label in content]


def _from_object(content: Mapping[str, Any]) -> Sequence[str]:
    indices = all(type(value) is int for value in content.values())  # of labels that may be numbers: folders 0, 1, 10
    if not indices and all(key.isdecimal() for key in content):
        return _in_order((key, _name(label)) for key, label in content.items())
    return _in_order((index, label) for label, index in content.items())


def _name(label: Any) -> str:
    match label:
        case bool():  # of YAML's yes and no
            raise ValueError(f"{label!r} is not a label: write it in quotes")
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
        if isinstance(index, bool) or (number := _number(str(index))) is None:
            raise ValueError(f"{index!r} is not an index")
        if number in labels:
            raise ValueError(f"index {number} is there twice")
        labels[number] = label
    for i in range(len(labels)):
        if i not in labels:
            raise ValueError(f"there is no label of index {i}")
    return [labels[i] for i in range(len(labels))]


def _number(text: str) -> int | None:
    """A whole number, which pandas may have written as 1.0; None for any other text."""
    match = re.fullmatch(r"\s*(\d+)(?:\.0*)?\s*", text)
    return int(match[1]) if match else None


def _unquoted(names: Sequence[str]) -> Sequence[str]:
    quoted = [re.fullmatch(r"(['\"])(.*)\1", name) for name in names]
    whole = all(quoted)
    return [
        match[2] if match and (whole or match[1] not in match[2]) else name
        for name, match in zip(names, quoted, strict=True)
    ]
