"""The ways to learn, and their recipes: a person's words to what model/fit takes."""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, get_origin, get_type_hints

import torch
from pydantic import TypeAdapter, ValidationError

from export.fit.dataset import Part
from model.checkpoints.checkpoint import Checkpoint
from model.fit.fitted import Fitted
from model.fit.probe import ProbeRecipe, probe
from model.fit.samples import Samples

Recipe = ProbeRecipe
RECIPES: dict[str, type[Recipe]] = {"probe": ProbeRecipe}
UNLABELLED = ("masked",)  # methods that need no labels


def recipe(method: str, given: Iterable[tuple[str, str]]) -> Recipe:
    """The recipe of a method with the fields that are given as text, the parts of a tuple separated by commas.

    Raises ValueError for a field that there is not, or a value that it cannot have.
    """
    kind = RECIPES[method]
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for name, text in given:
        if name not in hints:
            raise ValueError(f"--recipe {name}: the recipe of {method} has {', '.join(hints)}")
        values[name] = text.split(",") if get_origin(hints[name]) is tuple else text
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        raise ValueError(f"--recipe {f'{name}={values[name]}: ' if name else ''}{first['msg']}") from None


def describe() -> str:
    """Every recipe with its defaults, a line each."""
    lines = []
    for method, kind in RECIPES.items():
        defaults = ", ".join(f"{field.name}={_text(field.default)}" for field in fields(kind))
        lines.append(f"  {method}: {defaults}")
    return "\n".join(lines)


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def learn(checkpoint: Checkpoint, chosen: Recipe, train: Part, held_out: Part, work: Path) -> Fitted:
    """Run the recipe, with snapshots in `work`. Raises ValueError, with the reason, where it cannot be run."""
    return probe(checkpoint.model, checkpoint.preprocessing, samples(train), samples(held_out), chosen)


def samples(part: Part) -> Samples:
    return Samples(pixels=torch.from_numpy(part.pixels), classes=torch.tensor(part.classes))
