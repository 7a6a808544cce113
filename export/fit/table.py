"""Images with their labels in a CSV: the columns `file` and `label`, and perhaps one that says what is held out."""

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from export.fit.labelled import UNLABELLED, Labelled, Listing, checked, unused
from export.folder_labels import label_of
from export.parts import HELD_OUT, HELD_OUT_NAMES, PART, TRAIN, TRAIN_NAMES, first_of
from model.checkpoints.checkpoint import first_few

COLUMNS = ("file", "label", "split")
SPLIT = COLUMNS[2]
OF_TRAIN = re.compile(r"((is|in|for)_?)?train(ing)?")  # names of columns with True where an image is to be learned from
OF_HELD_OUT = re.compile(r"is_?valid|(is_?)?(val|validation|test|held_?out)")  # or is held out
UNCLEAR = re.compile(
    rf"{OF_TRAIN.pattern}|{OF_HELD_OUT.pattern}|valid|(sub|data)?set|(k_?|cv_?)?fold|cv|partition|usage|phase"
)
TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
SEPARATORS = re.compile(r"[,;|]")  # of several labels in one cell


def of_csv(path: Path, *, labelled: bool) -> Listing:
    """The images in a CSV, whose files are relative to its folder. Raises ValueError, with the reason."""
    parts: dict[str, list[Labelled]] = defaultdict(list)
    try:
        needed = COLUMNS[:2] if labelled else COLUMNS[:1]
        rows = [*_rows(path, needed)]
        column, of_rows = _split(rows, needed)
        for row, part in zip(rows, of_rows, strict=True):
            label = label_of(row["label"]) if labelled else UNLABELLED
            parts[part].append(Labelled(path.parent / row["file"], label))
        learned, held_out = first_of(TRAIN_NAMES, parts), first_of(HELD_OUT_NAMES, parts)
        if learned is None:
            raise ValueError("it lists no images to learn from")
        used = [part for part in (learned, held_out) if part]
        notes = [*unused(path, parts, used), *_several({label for part in used for _, label in parts[part]})]
        notes += [f"{path}: the column {column} says which images are held out"] if column not in ("", SPLIT) else []
        if dropped := sorted({*rows[0]} - {*needed, column, ""}):
            notes.append(f"{path}: columns that are not used: {first_few(dropped)}")
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        reason = "it is not text in UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise ValueError(f"--images {path}: {reason}") from None
    judged = tuple(parts[held_out]) if held_out else None
    return checked(Listing(train=tuple(parts[learned]), held_out=judged, notes=tuple(notes)))


def _rows(path: Path, needed: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """The cells of each line by the names of their columns, in lower case. All that are `needed` have a value."""
    with path.open(encoding="utf-8-sig", newline="") as text:
        rows = csv.reader(text, strict=True, skipinitialspace=True)
        columns = [name.strip().lower() for name in next(rows, [])]
        if absent := [name for name in needed if name not in columns]:
            separated = re.findall("[;\t]", "".join(columns))
            hint = ". Its columns must be separated by commas" if separated else ""
            raise ValueError(
                f"its first line is {', '.join(columns) or 'empty'}; it lacks {' and '.join(absent)}{hint}"
            )
        if twice := [name for name in COLUMNS if columns.count(name) > 1]:
            raise ValueError(f"two columns are called {twice[0]}")
        for cells in rows:
            if not cells:
                continue
            stripped = [cell.strip() for cell in cells]
            if any(stripped[len(columns) :]):
                raise ValueError(
                    f"line {rows.line_num}: it has {len(cells)} cells, and the first line {len(columns)}. An image has "
                    "one label; a name with a comma stands in quotes"
                )
            row = dict(zip(columns, [*stripped, *[""] * len(columns)], strict=False))
            if empty := [name for name in (*needed, "split") if row.get(name) == ""]:
                raise ValueError(f"line {rows.line_num}: {empty[0]} is empty")
            if row.get("split", TRAIN).casefold() not in (*TRAIN_NAMES, *HELD_OUT_NAMES):
                raise ValueError(
                    f"line {rows.line_num}: split is {row['split']!r}, and not one of "
                    f"{', '.join((*TRAIN_NAMES, *HELD_OUT_NAMES))}"
                )
            yield row


def _split(rows: Sequence[dict[str, str]], needed: Collection[str]) -> tuple[str, Sequence[str]]:
    """The column that says what is held out, or "", and the part of each row, in lower case.

    Raises ValueError for a column that may say so, but not in words that are known.
    """
    found: dict[str, list[str]] = {}
    for name in {*(rows[0] if rows else ())} - {*needed}:
        cells = [row[name].casefold() for row in rows]
        kinds = {*cells}
        if kinds <= {*TRAIN_NAMES, *HELD_OUT_NAMES} and (name == SPLIT or kinds & {*TRAIN_NAMES}):
            found[name] = cells
        elif kinds <= TRUTH.keys() and (OF_TRAIN.fullmatch(name) or OF_HELD_OUT.fullmatch(name)):
            learned = bool(OF_TRAIN.fullmatch(name))
            found[name] = [TRAIN if TRUTH[cell] == learned else HELD_OUT for cell in cells]
        elif SPLIT not in rows[0] and len(kinds) > 1 and (UNCLEAR.fullmatch(name) or _names_parts(kinds)):
            raise ValueError(
                f"the column {name} may say which images are held out, and has {first_few(sorted(kinds))}: call it "
                f"{SPLIT}, with {TRAIN} or {HELD_OUT} in every line, or leave it out"
            )
    if SPLIT not in found and len({*map(tuple, found.values())}) > 1:
        raise ValueError(f"the columns {first_few(sorted(found))} hold out different images: leave one of them")
    column = SPLIT if SPLIT in found else min(found, default="")
    return column, found.get(column, [TRAIN] * len(rows))


def _names_parts(words: Collection[str]) -> bool:
    """Whether all of them are parts of a data set, or some name images to learn from and some held-out ones."""
    learned, held_out = ({*words} & {*names} for names in (TRAIN_NAMES, HELD_OUT_NAMES))
    return all(map(PART.fullmatch, words)) or bool(learned and held_out)


def _several(labels: Collection[str]) -> Iterator[str]:
    """The note on labels that may be several. Raises ValueError where every part of one is in another label too."""
    parts = {label: [part.strip() for part in SEPARATORS.split(label)] for label in sorted(labels)}
    count = Counter(part for of_label in parts.values() for part in {*of_label})
    joined = [label for label, of_label in parts.items() if len({*of_label}) > 1]
    if several := [label for label in joined if all(count[part] > 1 for part in parts[label])]:
        raise ValueError(
            f"the label {several[0]!r} is {len(parts[several[0]])} labels of other images, and an image can have one"
        )
    if joined:
        yield f"each of these is one label, as an image has no more: {first_few(joined, separator=' ')}"
