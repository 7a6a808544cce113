"""The head of a checkpoint of transformers: whether there is one, what it reads, its labels and its score."""

import re
from typing import Any, NamedTuple

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.facts import LEFT_OUT, Facts, Score, resolve_score
from model.checkpoints.families.huggingface_kinds import CLASSIFYING, OF_POOLERS, Json, Kind
from model.checkpoints.label_files import by_index
from model.checkpoints.source import Source

POOLER = "pooler_output"
OTHER_MEAN = re.compile(r"4\.(48|49|50|51)\b")  # releases

# As in pipelines/image_classification.py.
SCORES: dict[str, Score] = {"multi_label_classification": "sigmoid", "single_label_classification": "softmax"}

# Microsoft's BEiT of ImageNet-22k numbers its 21,841 labels as Google's 21,843, without the two that it does not have
# (models/beit/convert_beit_unilm_to_pytorch.py): the classes are the labels in that order.
NUMBERS_22K = [number for number in range(21843) if number not in (9205, 15027)]


class Head(NamedTuple):
    classifies: bool  # else the network gives embeddings
    classes: int
    pool: str | None  # what a person's own classifier reads: a pool of ViTConfig, or POOLER
    dense: int | None  # numbers that a pooler or a projection gives, if there is one

    def reads(self, kind: Kind, stated: Json, fields: Json) -> Json:
        """The fields of ViTConfig that say so, where it is not what the classifiers of transformers read. `fields` are
        the others.
        """
        if not self.classifies:
            return {**_pooler(stated, self.dense, fields), **(kind.headless or {}), "representation_size": self.dense}
        if self.pool == POOLER:
            return {**_pooler(stated, self.dense, fields), "pool": "cls", "representation_size": self.dense}
        return {"pool": self.pool, "representation_size": None} if self.pool else {}


def head_of(source: Source, facts: Facts, kind: Kind, architecture: str, *, width: int) -> Head:
    """`source` has this project's names of tensors, and tokens of so many numbers.

    Raises CheckpointError if the classifier is missing, or if it is not known what the classifier reads.
    """
    rows = source.shape("head.weight")[0] if "head.weight" in source else 0
    dense = source.shape("pre_logits.weight")[0] if "pre_logits.weight" in source else None
    if facts.serves_head and architecture.endswith(CLASSIFYING) and not rows:
        raise CheckpointError(f"{source.file.name} holds {architecture} without classifier.weight: {LEFT_OUT}")
    other = rows > 0 and _is_of_a_person(source, kind, architecture)
    pool = _pool_of_other_head(source, facts, kind, architecture, width) if other and facts.serves_head else None
    classifies = (rows > 0 or architecture in kind.classifiers) and (facts.serves_head or not other)
    return Head(classifies, rows if classifies else 0, pool, dense)


def check_pool(facts: Facts, config: Json, pool: str) -> None:
    """Ask what the classifier of DINOv2 with registers reads, if config.json names a release in which that was another
    mean (transformers #37836). Raises CheckpointError for that one.
    """
    release = str(config.get("transformers_version"))
    if config.get("model_type") != "dinov2_with_registers" or not OTHER_MEAN.match(release):
        return
    why = (
        f"config.json is of transformers {release}. Until 4.51 its classifier read the class token and the mean of "
        "patches and registers, which is not supported; since then, and in Facebook's own files, the mean is of the "
        "patches alone. If the classifier was trained so, say it, as in this example"
    )
    (given,) = facts.need({"pool": pool}, why=why)
    if given != pool:
        raise CheckpointError(f"--set pool={given}: supported is {pool}")


def score_of(config: Json, facts: Facts, classes: int) -> Score:
    """Raises CheckpointError if the outputs that are served are not scores of labels."""
    problem = config.get("problem_type")
    if classes and facts.serves_head and problem not in (None, *SCORES):
        reason = "the outputs are numbers, not scores of labels" if problem == "regression" else "it is not known"
        raise CheckpointError(f"config.json says problem_type {problem}: {reason}. {LEFT_OUT}")
    stated = SCORES[problem] if problem in [*SCORES] else None
    return resolve_score(facts, classes, said=stated, where="config.json")


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


def _is_of_a_person(source: Source, kind: Kind, architecture: str) -> bool:
    """Whether the classifier may be a person's own: transformers has none of this name, and its own read no pooler."""
    own = architecture in kind.classifiers if source.config.get("architectures") else bool(kind.classifiers)
    return not own or bool(source.foreign_head) or ("pre_logits.weight" in source and not kind.compares)


def _pool_of_other_head(source: Source, facts: Facts, kind: Kind, architecture: str, width: int) -> str:
    """What a person's classifier reads, which is written nowhere: the place of ViTConfig, or the pooler's output."""
    pooler = source.names_in_file.get("pre_logits.weight")
    head = source.foreign_head or source.names_in_file["head.weight"]
    why = f"what {head} of {architecture} reads is written nowhere: "
    if kind.compares or source.config["model_type"] in ("beit", "data2vec-vision"):  # where the last norm depends on it
        raise CheckpointError(f"{why}save the model as {kind.classifiers[0]}, or {LEFT_OUT}")
    of_tokens = ("mean_all",) if source.config["model_type"] == "ijepa" else ("cls", "mean", "mean_all")
    if source.shape("head.weight")[1] == 2 * width:
        of_tokens = ("cls_mean",)
    pools = (*of_tokens, POOLER) if pooler else of_tokens
    (pool,) = facts.need({"pool": POOLER if pooler else pools[0]}, why=f"{why}give it, as in this example")
    if pool not in pools:
        raise CheckpointError(f"--set pool={pool}: it is one of {', '.join(pools)}")
    return str(pool)


def _pooler(stated: Json, dense: int | None, fields: Json) -> Json:
    """Fields for the pooler of ViT and DeiT, a layer on the class token. Raises CheckpointError for another one."""
    if dense is None or "pooler_act" not in stated:
        return {}
    size, act = stated["pooler_output_size"] or stated["hidden_size"], stated["pooler_act"]
    if size != dense:
        raise CheckpointError(f"config.json says pooler_output_size {size}, and the pooler gives {dense} numbers")
    if act not in OF_POOLERS:
        raise CheckpointError(f"config.json has the pooler_act {act}; supported are {', '.join(OF_POOLERS)}")
    if not fields.get("class_token", True):
        raise CheckpointError("a pooler of IJEPA reads the first patch alone, which is not supported")
    return {"representation": OF_POOLERS[act]}
