"""What config.json of transformers says in the same way for every model: sizes, labels and the score."""

from typing import Any

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.score import Score


def pair(size: int | list[int]) -> tuple[int, int]:
    """(height, width) of a size, which is one number for a square."""
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def labels(id2label: dict[str, Any] | None, classes: int) -> tuple[str, ...]:
    """Empty without names: LABEL_0, LABEL_1 and so on are what transformers writes then.

    Raises CheckpointError for names of other classes.
    """
    if not id2label:
        return ()
    found = {int(number): str(label) for number, label in id2label.items()}
    if sorted(found) != list(range(classes)):
        raise CheckpointError(f"config.json's id2label has {len(found)} labels, not one for each of {classes} classes")
    names = tuple(found[i] for i in range(classes))
    return () if names == tuple(f"LABEL_{i}" for i in range(classes)) else names


def score(problem_type: str | None) -> Score | None:
    """As in pipelines/image_classification.py. Raises CheckpointError for a regression."""
    if problem_type == "regression":
        raise CheckpointError("config.json says problem_type regression: the outputs are numbers, not scores of labels")
    known: dict[str | None, Score] = {
        "multi_label_classification": "sigmoid",
        "single_label_classification": "softmax",
    }
    return known.get(problem_type)
