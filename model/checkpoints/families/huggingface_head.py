"""What config.json of transformers states about a classifier: its labels and its score."""

from typing import Any

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.facts import LEFT_OUT, Facts, Score, resolve_score
from model.checkpoints.families.huggingface_kinds import Json
from model.checkpoints.labels import by_index

CLASSIFYING = ("ForImageClassification", "ForImageClassificationWithTeacher")  # how classes with a head are named

# As in pipelines/image_classification.py.
SCORES: dict[str, Score] = {"multi_label_classification": "sigmoid", "single_label_classification": "softmax"}

# Microsoft's BEiT of ImageNet-22k numbers its 21,841 labels as Google's 21,843, without the two that it does not have
# (models/beit/convert_beit_unilm_to_pytorch.py): the classes are the labels in that order.
NUMBERS_22K = [number for number in range(21843) if number not in (9205, 15027)]


def score_of(config: Json, facts: Facts, classes: int) -> Score:
    """Raises CheckpointError if the outputs that are served are not scores of labels."""
    problem = config.get("problem_type")
    if classes and facts.serves_head and problem not in (None, *SCORES):
        reason = "the outputs are numbers, not scores of labels" if problem == "regression" else "it is not known"
        raise CheckpointError(f"config.json says problem_type {problem}: {reason}. {LEFT_OUT}")
    stated = SCORES[problem] if problem in [*SCORES] else None
    return resolve_score(facts, classes, stated=stated, origin="config.json")


def labels_of(id2label: Any, classes: int) -> tuple[tuple[str, ...], str]:
    """The names, or why they cannot be read. There are none where they are LABEL_0, LABEL_1 and so on, which
    transformers writes then.
    """
    if not classes or id2label is None or id2label == {}:
        return (), ""
    if isinstance(id2label, dict) and {*id2label} == {str(number) for number in NUMBERS_22K}:
        id2label = {i: id2label[str(number)] for i, number in enumerate(NUMBERS_22K)}
    try:
        names = by_index(id2label)
    except ValueError as error:
        return (), f"config.json's id2label cannot be read: {error}"
    return (() if names == tuple(f"LABEL_{i}" for i in range(classes)) else names), ""
