"""Facts about a checkpoint, each with the place where it was found; a person may override any of them."""

import ast
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Literal, TypeVar, get_args

from model.checkpoints.checkpoint import CheckpointError

T = TypeVar("T")

Score = Literal["softmax", "sigmoid"]
IMAGENET_21K = 21843  # classes of Google's version, in every library that has its weights
LEFT_OUT = "--set num_classes=0 leaves the head out, and the service gives embeddings"  # for errors about a head
MISSING = "missing"  # the origin of a fact that a person still has to give

ALIKE = 0.75  # of names, for one to be meant by the other: from 0 to 1
LARGEST = 1e9  # magnitude of a number that a person sets: no fact comes near it


class Facts:
    """Collects what a family's loader finds. `overrides` are the `--set fact=value` of the command line."""

    def __init__(self, overrides: dict[str, str] | None = None) -> None:
        self.overrides = dict(overrides or {})
        self.origins: dict[str, str] = {}  # by the name of the fact
        self.missing: list[str] = []  # sentences on what a person still has to give
        self.seen: dict[str, tuple[Any, str]] = {}  # value and origin, of a file that cannot be described without them

    def resolve(self, name: str, value: T, origin: str) -> T:
        """The value that a person has set, else `value`; recorded with its origin. What is missing stays so."""
        if name in self.overrides:
            value, origin = self._parse(name, value), "set by hand"
        elif self.origins.get(name) == MISSING:
            origin = MISSING
        self.origins[name] = origin
        return value

    @property
    def serves_head(self) -> bool:
        """Whether the head is served. What is known or wrong about another one does not matter."""
        return "num_classes" not in self.overrides or self._parse("num_classes", 0) != 0

    def need(self, examples: Mapping[str, Any], *, why: str = "") -> list[Any]:
        """Facts that the file cannot carry. Where a person has not set one, its example stands in its place, so that
        the rest can be described, and `missing` has a sentence that ends with the examples; `why` is how it begins.
        """
        absent = {name: _text(example) for name, example in examples.items() if name not in self.overrides}
        if absent:
            flags = " ".join(f"--set {name}={text}" for name, text in absent.items())
            why = why or f"the file does not say {', '.join(absent)}: give it, as in this example"
            self.missing.append(f"{why}: {flags}")
        return [self.resolve(name, example, MISSING) for name, example in examples.items()]

    def check_overrides(self) -> None:
        """Raises CheckpointError for an override of a fact that the loader does not use."""
        unknown = self.overrides.keys() - self.origins.keys()
        if unknown:
            known = f"--set {', '.join(sorted(unknown))}: this kind of checkpoint has {', '.join(sorted(self.origins))}"
            raise CheckpointError(". ".join([known, *self.misspelt()]))

    def misspelt(self) -> list[str]:
        """A sentence for each override whose name is like that of a fact that the loader knows so far."""
        unknown = sorted(self.overrides.keys() - self.origins.keys())
        nearest = {name: get_close_matches(name, self.origins, n=1, cutoff=ALIKE) for name in unknown}
        return [f"--set {name}: is {near[0]} meant?" for name, near in nearest.items() if near]

    def _parse(self, name: str, like: Any) -> Any:
        """The text of an override as a value of the type of `like`. Text that is not a Python literal stays text."""
        text = self.overrides[name]
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # all that literal_eval raises
            value = text
        try:
            return _typed(value, like)
        except TypeError:
            raise CheckpointError(f"--set {name}={text}: expected something like {name}={_text(like)}") from None


def _typed(value: Any, like: Any) -> Any:
    """`value` with floats where `like` has floats. Raises TypeError if it differs from `like` in type or length."""
    if isinstance(like, tuple) and isinstance(value, tuple) and len(value) == len(like):
        return tuple(_typed(part, of_like) for part, of_like in zip(value, like, strict=True))
    if isinstance(value, int | float) and not abs(value) < LARGEST:
        raise TypeError
    if isinstance(like, float) and type(value) is int:
        return float(value)
    if isinstance(like, tuple) or (like is not None and type(value) is not type(like)):
        raise TypeError
    return value


def _text(value: Any) -> str:
    """A value as one types it after `--set`, without parentheses, which a shell would want quoted."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def resolve_score(facts: Facts, classes: int, *, stated: Score | None = None, origin: str = "") -> Score:
    """The score that the checkpoint states at `origin`, else that which training with so many classes implies.

    One class has a sigmoid whatever is stated, as in transformers' pipelines/image_classification.py.

    Google trained its ImageNet-21k models with a sigmoid for each label (big_vision configs/vit_i21k.py,
    `config.loss = 'sigmoid_xent'`): softmax of their logits is not a probability that was ever fitted.
    """
    if classes == 1:
        score: Score = "sigmoid"
        origin = "one class, whose softmax is always 1"
    elif stated is not None:
        score = stated
    elif classes == IMAGENET_21K:
        score, origin = "sigmoid", "trained on ImageNet-21k with sigmoid_xent: big_vision configs/vit_i21k.py"
    else:
        score, origin = "softmax", "the usual loss of classifiers"
    score = facts.resolve("score", score, origin)
    if score not in get_args(Score):
        raise CheckpointError(f"--set score={score}: it is softmax or sigmoid")
    if classes == 1 and score == "softmax":
        raise CheckpointError("--set score=softmax: the softmax of one class is always 1, so its score is a sigmoid")
    return score
