"""What config.json of transformers says in the same way for every model: sizes, labels and the score."""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from model.checkpoints.checkpoint import CheckpointError, Description
from model.checkpoints.facts import Facts
from model.checkpoints.families.huggingface_images import check_size, describe_images
from model.checkpoints.families.huggingface_kinds import ACTIVATIONS, Json
from model.checkpoints.score import Score, resolve_score
from model.checkpoints.source import Source
from model.config import ViTConfig
from model.positions import Grid

CLASSIFYING = ("ForImageClassification", "ForImageClassificationWithTeacher")  # how classes with a head are named

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


def architecture_of(source: Source) -> str:
    """The class of transformers whose weights these are."""
    architectures: list[str] = source.config.get("architectures") or [f"a {source.config['model_type']} model"]
    return architectures[0]


def check_head(source: Source) -> None:
    """Raises CheckpointError for a classifier beside a model that has none: what it reads is not written anywhere."""
    if source.config.get("architectures") and not architecture_of(source).endswith(CLASSIFYING):
        raise CheckpointError(
            f"config.json names {architecture_of(source)}, which has no classifier, but {source.file.name} has one. It "
            "is not known what that one reads: save the model as ...ForImageClassification"
        )


def describe_model(
    source: Source,
    facts: Facts,
    stated: Json,
    fields: Json,
    *,
    written: Collection[str],
    processor: str,
    interpolates: bool = False,
    patch: int | None = None,
    compares: Score | None = None,
) -> Description:
    """The description of a model. The tensors of `source` have our names.

    `stated` are the keys that are `written` in config.json, with the defaults of the others. `fields` of ViTConfig are
    those that the architecture implies. Rows and columns that no whole `patch` covers are cut off. `compares` is the
    score of a model that compares images with text, in place of classes.
    Raises CheckpointError without the head that the architecture has, or if its images are not RGB.
    """
    kind, architecture = source.config["model_type"], architecture_of(source)
    classes = source.shape("head.weight")[0] if "head.weight" in source else 0
    if not classes and architecture.endswith(CLASSIFYING):
        raise CheckpointError(f"{source.file.name} holds {architecture} without classifier.weight")
    if stated["num_channels"] != 3:
        raise CheckpointError(f"{architecture} takes {stated['num_channels']} channels, not red, green and blue")
    size = pair(stated["image_size"])
    preprocessing = describe_images(source, facts, processor=processor, size=size)
    if not interpolates:
        check_size(preprocessing, size, facts, architecture=architecture)
    if patch:
        preprocessing = preprocessing.in_patches(patch)
    values = {
        "image_size": preprocessing.size,
        "patch_size": patch,
        "width": stated["hidden_size"],
        "depth": stated["num_hidden_layers"],
        "mlp_dim": stated["intermediate_size"],
        "heads": stated["num_attention_heads"],
        "num_classes": classes,
        "position_resize": "bicubic",
        "norm_eps": stated["layer_norm_eps"],
        "activation": ACTIVATIONS.get(stated["hidden_act"], stated["hidden_act"]),
        **fields,
    }
    for field, key in (("heads", "num_attention_heads"), ("norm_eps", "layer_norm_eps"), ("activation", "hidden_act")):
        origin = "config.json" if key in written else f"transformers' default for {kind}"
        values[field] = facts.resolve(field, values[field], architecture if field in fields else origin)
    score = compares or _score(source.config.get("problem_type"))
    origin = f"how {architecture} compares images with text" if compares else "config.json"
    return Description(
        name=facts.resolve("name", source.name, "name of the checkpoint"),
        family="transformers",
        architecture=architecture,
        config=ViTConfig(**values),
        preprocessing=preprocessing,
        labels=_labels(source.config.get("id2label"), classes) if classes else (),
        labels_from="config.json",
        score=resolve_score(facts, classes, stated=score, origin=origin),
        text_tower=compares is not None,
    )


def pair(size: int | list[int]) -> tuple[int, int]:
    """(height, width) of a size, which is one number for a square."""
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def grid_of(stated: Json, config: ViTConfig) -> Grid:
    """Rows and columns of the positions in the file."""
    height, width = pair(stated["image_size"])
    return height // config.patch_size, width // config.patch_size


def _labels(id2label: dict[str, Any] | None, classes: int) -> tuple[str, ...]:
    """Empty without names: LABEL_0, LABEL_1 and so on are what transformers writes then.

    Raises CheckpointError if they are not numbered one after the other.
    """
    if not id2label:
        return ()
    labels = {int(number): str(label) for number, label in id2label.items()}
    numbers = sorted(labels)
    if numbers not in (list(range(len(numbers))), NUMBERS_22K):
        raise CheckpointError(
            f"config.json's id2label numbers {len(labels)} labels, but not from 0 to {len(labels) - 1}"
        )
    names = tuple(labels[number] for number in numbers)
    return () if names == tuple(f"LABEL_{i}" for i in range(classes)) else names


def _score(problem_type: str | None) -> Score | None:
    """As in pipelines/image_classification.py. Raises CheckpointError for a regression."""
    if problem_type == "regression":
        raise CheckpointError("config.json says problem_type regression: the outputs are numbers, not scores of labels")
    known: dict[str | None, Score] = {
        "multi_label_classification": "sigmoid",
        "single_label_classification": "softmax",
    }
    return known.get(problem_type)
