"""What config.json of transformers says in the same way for every model: sizes, labels and the score."""

from collections.abc import Mapping
from typing import Any, TypeVar

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.score import Score

# Microsoft's BEiT of ImageNet-22k numbers its 21,841 labels as Google's 21,843, without the two that it does not have
# (models/beit/convert_beit_unilm_to_pytorch.py): the classes are the labels in that order.
NUMBERS_22K = [number for number in range(21843) if number not in (9205, 15027)]


K = TypeVar("K")


def kind_of(config: dict[str, Any], kinds: Mapping[str, K], *, supported: str) -> K:
    """What is known of the config's model_type. Raises CheckpointError, which calls the kinds `supported`."""
    model_type = config.get("model_type", "")
    if model_type not in kinds:
        raise CheckpointError(
            f"config.json has the model_type {model_type or None}; the supported {supported} are {', '.join(kinds)}"
            if config
            else "there is no config.json beside these weights of transformers: download it from their source"
        )
    return kinds[model_type]


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
    numbers = sorted(found)
    if len(numbers) != classes or numbers not in (list(range(classes)), NUMBERS_22K):
        raise CheckpointError(f"config.json's id2label has {len(found)} labels, not one for each of {classes} classes")
    names = tuple(found[number] for number in numbers)
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
