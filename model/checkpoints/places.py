"""Where else a checkpoint may be: what a person means by a path that does not exist, and folders below one."""

import json
import os
import re
from collections.abc import Callable, Collection
from pathlib import Path

from model.checkpoints.checkpoint import first_few

DEEPEST = 3  # folders below a given one: Lightning's lightning_logs/version_0/checkpoints
MOST_SEEN = 2000  # folders
MOST_NAMED = 4
STATE = "trainer_state.json"  # of the Trainer of transformers

NAME = r"[\w.-]+/[\w.-]+"  # of a repository
HUB = re.compile(
    rf"(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/(?P<name>{NAME})(/(tree|blob|resolve)/(?P<revision>[^/]+).*)?/?"
    rf"|(?:hf|hf[-_]hub|huggingface):/*(?P<short>{NAME}(@[^/]+)?)"
)
REPOSITORY = re.compile(rf"{NAME}(@[\w./-]+)?")
FILE = re.compile(r".*\.(safetensors|pth|pt|tar|ckpt|bin|npz|json|h5|onnx|zip)")


def missing(path: Path) -> str:
    """A sentence on a path that does not exist, with what may be meant by it."""
    text = re.sub(r"^(\w+):/+", r"\1://", str(path))  # a Path has one slash there
    if hub := HUB.fullmatch(text):
        revision = f"@{hub['revision']}" if hub["revision"] not in (None, "main") else ""
        repository = hub["short"] or hub["name"] + revision
        return f"{text} is not a path: the repository of the Hugging Face Hub is hf://{repository}"
    if re.match(r"\w+://", text):
        return f"{text} is not a path: download it, and give the path of the file or folder"
    if REPOSITORY.fullmatch(text) and not FILE.fullmatch(text) and not path.parent.exists():
        return f"{path} does not exist. If a repository of the Hugging Face Hub is meant, give hf://{text}"
    return f"{path} does not exist"


def below(folder: Path, has_weights: Callable[[Collection[str]], bool]) -> str:
    """A sentence on the folders below one that have weights, newest and best first as its trainer names them; or empty.

    `has_weights` says it of the names of the files in a folder.
    """
    found: list[Path] = []
    states: list[Path] = []
    for seen, (here, folders, files) in enumerate(os.walk(folder)):
        if seen == MOST_SEEN:
            break
        place = Path(here)
        if len(place.relative_to(folder).parts) >= DEEPEST:
            folders.clear()
        if STATE in files:
            states.append(place)
        if place != folder and has_weights(files):
            found.append(place)
    if not found:
        return ""
    states.sort(key=lambda place: (place != folder, *_newest(place)))  # the last to be written come first
    best = next(filter(None, map(_best, states)), "")
    found.sort(key=lambda place: (place.name != best, *_newest(place)))
    names = [f"{place}{' (the best, by {STATE})' if place.name == best else ''}" for place in found]
    some = first_few(names, most=MOST_NAMED)
    return f"{folder} has no weights of its own: give a folder below it, such as {some}"


def names_in(folder: Path) -> list[str]:
    """Files and folders in a folder and in those that it has, the outer ones first, with / between."""
    inside = sorted(folder.iterdir())
    deeper = [part for place in inside[:MOST_SEEN] if place.is_dir() for part in sorted(place.iterdir())[:MOST_SEEN]]
    return [path.relative_to(folder).as_posix() for path in (*inside, *deeper)]


def _newest(place: Path) -> tuple[int, str]:
    """An order in which checkpoint-1000 comes before checkpoint-500."""
    number = re.search(r"(\d+)\D*$", place.name)
    return -int(number[1]) if number else 0, str(place)


def _best(folder: Path) -> str:
    """The name of the checkpoint that the Trainer of transformers calls the best; empty if it does not say so."""
    try:
        if not (folder / STATE).is_file():  # a FIFO would never end
            return ""
        return Path(json.loads((folder / STATE).read_bytes())["best_model_checkpoint"]).name
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return ""
