"""Names of the classes: a person's file, else the checkpoint's own, else those of the ImageNet with as many classes."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from model.checkpoints.checkpoint import CheckpointError, first_few
from model.checkpoints.imagenet import names_of, version_of
from model.checkpoints.label_files import names_in, none_empty, read

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
    is a file, or "none" to number the classes. `beside` is what else may name the classes, by where it stands: a file,
    or an object. It is taken if it can be read and names all classes, and otherwise no guessed names are.
    Raises CheckpointError for names that cannot be read, for another number of names than of classes, and for two that
    differ; of one file, the names that its library reads count.
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
    others = {where: _read_beside(value) for where, value in beside.items()}
    others = {where: names for where, names in others.items() if not _made_up(names)}
    fitting = {where: names for where, names in others.items() if len(names) == classes}
    if own.names:
        elsewhere = {where: names for where, names in fitting.items() if not where.endswith(f" of {own.origin}")}
        fitting = {own.origin: own.names} | {w: names for w, names in elsewhere.items() if names != own.wordnet}
    if len({*fitting.values()}) > 1:
        raise CheckpointError(f"the names of the classes differ in {first_few([*fitting])}: {NAME_OR_NUMBER}")
    if own.names:
        return own if own.wordnet else _readable(own.names, own.origin)
    if fitting:
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
    labels = _readable(read(path), path.name)
    twice = [name for name, count in Counter(labels.names).items() if count > 1]
    return labels._replace(advice=f"Several classes are called {first_few(twice)}." if twice else "")


def check_prompts(prompts: Iterable[str]) -> None:
    """Raises CheckpointError for a sentence without a place for the label, or with the doubled braces of str.format."""
    if doubled := next((prompt for prompt in prompts if "{{" in prompt or "}}" in prompt), None):
        raise CheckpointError(f'--prompt "{doubled}" has doubled braces, which are not read as single ones')
    if wrong := next((prompt for prompt in prompts if PLACE not in prompt), None):
        raise CheckpointError(f'--prompt "{wrong}" has no {PLACE} in place of the label, as in "{PROMPT}"')


def _read_beside(names: Any) -> tuple[str, ...]:
    """None where they cannot be read."""
    try:
        found = read(names) if isinstance(names, Path) else names_in(names)
        none_empty(found)
    except (CheckpointError, ValueError, TypeError):
        return ()
    return found


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
