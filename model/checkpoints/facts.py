"""Facts about a checkpoint, each with its source and the place where it was found; a person may override any of them.

What nothing in the file proves is guessed, however likely it is: the switches and the preprocessing of a library that
is known by the names of tensors alone.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, TypeVar, get_args

from model.checkpoints.checkpoint import CheckpointError, Origin
from model.checkpoints.statements import Said
from model.config import ViTConfig

T = TypeVar("T")

Score = Literal["softmax", "sigmoid"]
IMAGENET_21K = 21843  # classes of Google's version, in every library that has its weights
LEFT_OUT = "--set num_classes=0 leaves the head out, and the service gives embeddings"  # for errors about a head
BY_HAND = Origin("by hand", "set by hand")
MISSING = Origin("guessed", "missing")  # of a fact that a person still has to give
UNSEEN = {  # what shapes and names of tensors do not show of a network
    *("activation", "block", "heads", "norm_eps", "pool", "pool_heads", "position_resize", "representation"),
    *("rope", "stem_numerics"),
}
TIMMS = {"activation": "act_layer", "heads": "num_heads", "pool": "global_pool"}  # arguments, by what they become

LARGEST = 1e9  # magnitude of a number that a person sets: no fact comes near it


class Facts:
    """Collects what a family's loader finds. `overrides` are the `--set fact=value` of the command line, `said` is what
    the file says of pixels, which a loader need not know.
    """

    def __init__(self, overrides: dict[str, str] | None = None, said: Sequence[Said] = ()) -> None:
        self.overrides = dict(overrides or {})
        self.said = said
        self.shown: set[str] = set()  # fields of UNSEEN that the tensors of the library do show
        self.origins: dict[str, Origin] = {}  # by the name of the fact
        self.network = Origin.guessed("")  # of the switches that the loader does not resolve: its class and arguments
        self.missing: list[str] = []  # sentences on what a person still has to give

    def resolve(self, name: str, value: T, origin: Origin) -> T:
        """The value that a person has set, else what the file says, else `value`; recorded with its origin. What is
        missing stays so.

        Raises CheckpointError if the file says another value than was found in it.
        """
        if name in self.overrides:
            value, origin = self._parse(name, value), BY_HAND
        elif self.origins.get(name) == MISSING:
            origin = MISSING
        elif said := self.said_of(
            name, *([Said(name, value, origin.where)] if origin.source in ("stated", "read") else [])
        ):
            value = said.value
            origin = origin if said.where == origin.where else Origin.stated(said.where)
        self.origins[name] = origin
        return value

    def said_of(self, name: str, *found: Said) -> Said | None:
        """What the file says of a fact that no person has set, which is what was `found` in another place.

        Raises CheckpointError where two places contradict each other, and for what cannot be read.
        """
        beside = [one for one in self.said if one.fact == name and name not in self.overrides]
        for one in beside:
            if one.value is None:
                raise CheckpointError(f"{one.where} cannot be read: give what it says with --set {name}=")
            if one.value != (first := [*found, *beside][0]).value:
                raise CheckpointError(
                    f"{first.where} says {name} {typed(first.value)}, and {one.where} {typed(one.value)}: choose one, "
                    f"as in this example: --set {name}={typed(one.value)}"
                )
        return next(iter([*found, *beside]), None) if beside else None

    def unseen(self, config: ViTConfig) -> dict[str, Origin]:
        """The origins of those fields of the configuration that the loader has not resolved."""
        hidden = (UNSEEN if config.positions == "learned" else UNSEEN | {"positions"}) - self.shown
        others = [field.name for field in fields(config) if field.name not in self.origins]
        shown = Origin.read("names and shapes of the tensors")
        given = {name: self.origins.get(TIMMS.get(name, ""), self.network) for name in hidden}
        return {name: given.get(name, shown) for name in others}

    @property
    def serves_head(self) -> bool:
        """Whether the head is served. What is known or wrong about another one does not matter."""
        return "num_classes" not in self.overrides or self._parse("num_classes", 0) != 0

    def need(self, examples: Mapping[str, Any], *, why: str = "") -> list[Any]:
        """Facts that the file cannot carry. Where a person has not set one, its example stands in its place, so that
        the rest can be described, and `missing` has a sentence that ends with the examples; `why` is how it begins.
        """
        absent = {
            name: typed(example)
            for name, example in examples.items()
            if name not in self.overrides and not self.said_of(name)
        }
        if absent:
            flags = " ".join(f"--set {name}={text}" for name, text in absent.items())
            why = why or f"the file does not say {', '.join(absent)}: give it, as in this example"
            self.missing.append(f"{why}: {flags}")
        return [self.resolve(name, example, MISSING) for name, example in examples.items()]

    def check_overrides(self) -> None:
        """Raises CheckpointError for an override of a fact that the loader does not use."""
        unknown = self.overrides.keys() - self.origins.keys()
        if unknown:
            known = ", ".join(sorted(self.origins))
            raise CheckpointError(f"--set {', '.join(sorted(unknown))}: this kind of checkpoint has {known}")

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
            raise CheckpointError(f"--set {name}={text}: expected something like {name}={typed(like)}") from None


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


def typed(value: Any) -> str:
    """A value as one types it after `--set`, without parentheses, which a shell would want quoted."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def resolve_score(facts: Facts, classes: int, *, said: Score | None = None, where: str = "") -> Score:
    """The score that the checkpoint states at `where`, else that which training with so many classes implies.

    One class has a sigmoid whatever is stated, as in transformers' pipelines/image_classification.py.

    Google trained its ImageNet-21k models with a sigmoid for each label (big_vision configs/vit_i21k.py,
    `config.loss = 'sigmoid_xent'`): softmax of their logits is not a probability that was ever fitted.
    """
    if classes == 1:
        score: Score = "sigmoid"
        origin = Origin.read("one class, whose softmax is always 1")
    elif said is not None:
        score, origin = said, Origin.stated(where)
    elif classes == IMAGENET_21K:
        score, origin = (
            "sigmoid",
            Origin.guessed("trained on ImageNet-21k with sigmoid_xent: big_vision configs/vit_i21k.py"),
        )
    else:
        score, origin = "softmax", Origin.guessed("the usual loss of classifiers")
    score = facts.resolve("score", score, origin)
    if score not in get_args(Score):
        raise CheckpointError(f"--set score={score}: it is softmax or sigmoid")
    if classes == 1 and score == "softmax":
        raise CheckpointError("--set score=softmax: the softmax of one class is always 1, so its score is a sigmoid")
    return score
