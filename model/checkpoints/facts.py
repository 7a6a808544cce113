"""Facts about a checkpoint, each with the place where it was found; a person may overrule any of them."""

import ast
from collections.abc import Mapping
from typing import Any, TypeVar

from model.checkpoints.checkpoint import CheckpointError

T = TypeVar("T")


class Facts:
    """Collects what a family's loader finds. `--set key=value` on the command line comes in as `overrides`."""

    def __init__(self, overrides: dict[str, str] | None = None) -> None:
        self.overrides = dict(overrides or {})
        self.values: dict[str, Any] = {}
        self.origins: dict[str, str] = {}

    def note(self, name: str, value: T, origin: str) -> T:
        """Record a fact and return it, or what a person has set in its place."""
        if name in self.overrides:
            value, origin = self._parse(name, value), "set by hand"
        self.values[name] = value
        self.origins[name] = origin
        return value

    def need(self, name: str, example: Any) -> Any:
        """A fact that the file cannot carry. Raises CheckpointError unless a person has set it."""
        return self.need_all({name: example})[0]

    def need_all(self, examples: Mapping[str, Any]) -> list[Any]:
        """Several such facts: what is missing is said in one go."""
        missing = [name for name in examples if name not in self.overrides]
        if missing:
            flags = self.missing_flags(examples)
            raise CheckpointError(f"the file does not say {', '.join(missing)}: give it with {flags}")
        return [self.note(name, example, "") for name, example in examples.items()]

    def missing_flags(self, examples: Mapping[str, Any]) -> str:
        """What a person would have to type for those of the facts that nobody has set; empty when all are."""
        missing = (name for name in examples if name not in self.overrides)
        return " ".join(f"--set {name}={_text(examples[name])}" for name in missing)

    def check_overrides(self) -> None:
        """Raises CheckpointError for an override that no loader asked about."""
        unknown = self.overrides.keys() - self.values.keys()
        if unknown:
            raise CheckpointError(
                f"--set {', '.join(sorted(unknown))}: this kind of checkpoint has {', '.join(sorted(self.values))}"
            )

    def _parse(self, name: str, like: Any) -> Any:
        """The text of an override as a value; a word that is no Python literal is text."""
        text = self.overrides[name]
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            value = text
        if isinstance(like, float) and isinstance(value, int):
            value = float(value)
        if like is not None and type(value) is not type(like):
            raise CheckpointError(f"--set {name}={text}: expected something like {name}={like}")
        return value


def _text(value: Any) -> str:
    """As one writes it after `--set`, without the brackets that a shell would want quoted."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
