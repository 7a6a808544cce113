"""Facts about a checkpoint, each with the place where it was found; a person may override any of them."""

import ast
from collections.abc import Mapping
from typing import Any, TypeVar

from model.checkpoints.checkpoint import CheckpointError

T = TypeVar("T")

LARGEST = 1e9  # magnitude of a number that a person sets: no fact comes near it


class Facts:
    """Collects what a family's loader finds. `overrides` are the `--set fact=value` of the command line."""

    def __init__(self, overrides: dict[str, str] | None = None) -> None:
        self.overrides = dict(overrides or {})
        self.values: dict[str, Any] = {}
        self.origins: dict[str, str] = {}

    def resolve(self, name: str, value: T, origin: str) -> T:
        """The value that a person has set, else `value`; recorded with its origin."""
        if name in self.overrides:
            value, origin = self._parse(name, value), "set by hand"
        self.values[name] = value
        self.origins[name] = origin
        return value

    def need(self, name: str, example: Any) -> Any:
        """A fact that the file cannot carry. Raises CheckpointError unless a person has set it."""
        return self.need_all({name: example})[0]

    def need_all(self, examples: Mapping[str, Any]) -> list[Any]:
        """Several such facts; one error names all that are missing."""
        missing = [name for name in examples if name not in self.overrides]
        if missing:
            flags = self.missing_flags(examples)
            raise CheckpointError(f"the file does not say {', '.join(missing)}: give it, as in this example: {flags}")
        return [self.resolve(name, example, "") for name, example in examples.items()]

    def missing_flags(self, examples: Mapping[str, Any]) -> str:
        """The `--set` options for the facts that are not set yet, with the values of the examples."""
        missing = (name for name in examples if name not in self.overrides)
        return " ".join(f"--set {name}={_text(examples[name])}" for name in missing)

    def check_overrides(self) -> None:
        """Raises CheckpointError for an override of a fact that the loader does not use."""
        unknown = self.overrides.keys() - self.values.keys()
        if unknown:
            raise CheckpointError(
                f"--set {', '.join(sorted(unknown))}: this kind of checkpoint has {', '.join(sorted(self.values))}"
            )

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
    """As one types it after `--set`, without the parentheses, which a shell would want quoted."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
