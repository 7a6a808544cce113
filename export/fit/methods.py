"""The methods of learning, and their recipes from the command line."""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from math import inf
from pathlib import Path
from textwrap import fill
from typing import Any

from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from model.checkpoints.checkpoint import Checkpoint, Description
from model.checkpoints.describe import flat
from model.fit.finetune import FinetuneRecipe, finetune
from model.fit.fitted import Fitted
from model.fit.masked import MaskedRecipe, masked
from model.fit.pretrain import PretrainRecipe, pretrain
from model.fit.probe import ProbeRecipe, probe, read_by_probe
from model.fit.samples import Samples
from model.preprocessing import Preprocessing

Recipe = ProbeRecipe | FinetuneRecipe | PretrainRecipe | MaskedRecipe
RECIPES: dict[str, type[Recipe]] = {
    "probe": ProbeRecipe,
    "finetune": FinetuneRecipe,
    "pretrain": PretrainRecipe,
    "masked": MaskedRecipe,
}
ROOM = 8 / 7  # sides of images from which crops are taken, to those of the crops: 256 to 224
SEED = "seed"
POSITIVE = ("epochs", "batch", "rate", "rates", "clip")
CHOSEN = "auto"  # in place of a value that the method chooses, which is None in its recipe


def recipe(method: str, given: Iterable[tuple[str, str]], *, seed: int) -> Recipe:
    """The recipe of a method with the fields that are given as text: parts of a tuple separated by commas, None "auto".

    Raises ValueError for a field that there is not, or a value that it cannot have.
    """
    kind = RECIPES[method]
    values, known = asdict(kind()), _fields(kind)
    if SEED in values:
        values[SEED] = seed
    for name, text in given:
        if name not in known:
            raise ValueError(f"--recipe {name}: the recipe of {method} has {', '.join(known)}")
        group, _, field = name.rpartition(".")
        (values[group] if group else values)[field] = _value(text, known[name])
    try:
        found = TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if isinstance(part, str))
        raise ValueError(f"--recipe {place}: {first['msg']}") from None
    for name in POSITIVE:
        value = getattr(found, name, None)
        numbers = value if isinstance(value, tuple) else (value,)
        if not all(number is None or 0 < number < inf for number in numbers):
            raise ValueError(f"--recipe {name}: it must be above 0, and finite")
    return found


def describe() -> str:
    """Every recipe with its defaults, each a paragraph of lines that are indented further."""
    texts = []
    for method, kind in RECIPES.items():
        fields = ", ".join(f"{name}={_text(default)}" for name, default in _fields(kind).items())
        texts.append(fill(f"{method}: {fields}", 100, initial_indent="  ", subsequent_indent="      "))
    return "\n".join(texts)


def _fields(kind: type[Recipe]) -> dict[str, Any]:
    """The defaults of what --recipe can change: fields of a recipe and of its parts, but not the seed."""
    return {name: default for name, default in flat(asdict(kind())).items() if name != SEED}


def _value(text: str, default: Any) -> list[str] | str | None:
    if text == CHOSEN:
        return None
    return text.split(",") if isinstance(default, tuple) else text


def _text(value: Any) -> str:
    if value is None:
        return CHOSEN
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def of_crops(recipe: Recipe, preprocessing: Preprocessing) -> Preprocessing:
    """The preprocessing of images to learn from: larger than the network's input where small crops are taken of them.

    A probe reads them whole, and so does fine-tuning at first; its crops are nearly whole images.
    """
    if isinstance(recipe, ProbeRecipe | FinetuneRecipe):
        return preprocessing
    height, width = preprocessing.size
    return preprocessing.resized((round(ROOM * height), round(ROOM * width)))


def reader(source: Description, recipe: Recipe) -> Callable[[Tensor], Tensor] | None:
    """What gives pixels (n, height, width, 3) the features (n, F) that a probe learns from, if the recipe has one."""
    if not isinstance(recipe, ProbeRecipe | FinetuneRecipe):
        return None
    assert isinstance(source, Checkpoint)
    return lambda pixels: read_by_probe(source.model, source.preprocessing, pixels, recipe.read)


def learn(source: Description, recipe: Recipe, train: Samples, held_out: Samples, work: Path) -> Fitted:
    """Run the recipe, with snapshots in `work`. `source` is a Checkpoint for methods that begin with its weights.

    Raises ValueError, with the reason, where it cannot be run.
    """
    parts = source.preprocessing, train, held_out
    if isinstance(recipe, PretrainRecipe):
        return pretrain(source.config, *parts, recipe, work=work)
    if isinstance(recipe, MaskedRecipe):
        return masked(source.config, *parts, recipe, work=work)
    assert isinstance(source, Checkpoint)
    if isinstance(recipe, FinetuneRecipe):
        return finetune(source.model, *parts, recipe, work=work)
    return probe(source.model, source.preprocessing, train, recipe)
