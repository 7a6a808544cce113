"""The facts of a checkpoint and their origins as text: `python -m export inspect CHECKPOINT`."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from textwrap import fill
from typing import Any

import torch

from model.checkpoints.checkpoint import Description, Origin, first_few
from model.checkpoints.facts import BY_HAND, MISSING, typed
from model.config import ViTConfig
from model.vit import VisionTransformer

SOURCES = ("guessed", "by hand", "stated", "read")
WIDTH = 120  # characters of a line


def report(description: Description) -> str:
    """One fact per line: name, value, origin."""
    config = description.config
    facts = {
        "family": description.family,
        "architecture": description.architecture,
        "name": description.name,
        "parameters": f"{parameters(config) / 1e6:.2f} M",
        **({"weights": description.weights} if description.weights else {}),
        **({"left out": first_few(description.unread)} if description.unread else {}),
        "labels": _labels(description),
        **({"prompts": ", ".join(description.prompts)} if description.prompts else {}),
        "score": description.score,
        **flat(config.to_json()),
        **flat({"preprocessing": description.preprocessing.to_json()}),
        **flat({"recipe": description.recipe, "figures": description.figures}),
    }
    found = [description.origins.get(name.removeprefix("preprocessing.")) for name in facts]
    values = ["?" if origin == MISSING else str(value) for value, origin in zip(facts.values(), found, strict=True)]
    return table([*zip(facts, values, map(worded, found), strict=True)])


def worded(origin: Origin | None) -> str:
    """Such as "guessed: deit main.py"."""
    if origin is None:
        return ""
    return origin.where if origin in (BY_HAND, MISSING) else f"{origin.source}: {origin.where}"


def facts_of(description: Description) -> dict[str, tuple[Any, Origin]]:
    """Each fact of what is served, with its value and its origin, guesses first. Switches of layers that are not there
    are none.
    """
    config = description.config
    absent = {
        "stem_numerics": config.stem_layers is None,
        "representation": config.representation_size is None,
        "representation_bias": config.representation_size is None,
    }
    known = {
        "architecture": description.architecture,
        **config.to_json(),
        **description.preprocessing.to_json(),
        "labels": len(description.labels),
        "score": description.score,
    }
    values = {**{name: text for name, text in description.overrides.items() if name != "name"}, **known}
    found = {name: (values[name], origin) for name, origin in description.origins.items() if name in values}
    present = [
        fact for fact in found.items() if not absent.get(fact[0]) and fact[1][0] is not None and fact[1][1] != MISSING
    ]
    return dict(sorted(present, key=lambda fact: SOURCES.index(fact[1][1].source)))


def sources(description: Description) -> str:
    """A paragraph for each source, guesses first: the facts, and in brackets where they are from. What the tensors show
    and is as in most networks is left out.
    """
    paragraphs: dict[str, dict[str, list[str]]] = {}
    usual = {field.name: field.default for field in fields(description.config)}
    for name, (value, (source, where)) in facts_of(description).items():
        if source != "read" or usual.get(name, MISSING) != value:
            paragraphs.setdefault(source, {}).setdefault(where, []).append(f"{name}={typed(value)}")
    return "\n".join(
        fill(f"{source}: {'; '.join(_places(places))}", WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        for source, places in paragraphs.items()
    )


def _places(places: dict[str, list[str]]) -> Iterator[str]:
    for where, facts in places.items():
        yield ", ".join(facts) + (f" ({where})" if where != BY_HAND.where else "")


def table(rows: Sequence[tuple[str, str, str]]) -> str:
    """One row per line: name, value, origin."""
    rows = [(name, " ".join(value.splitlines()), origin) for name, value, origin in rows]
    name_width, value_width = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join(f"{name:<{name_width}}  {value:<{value_width}}  {origin}".rstrip() for name, value, origin in rows)


def about_weights(description: Description) -> Iterator[str]:
    """Sentences on which weights of the file were taken, and what of it was left out."""
    if description.weights:
        yield f"Weights: {description.weights}."
    if description.unread:
        yield f"Left out, as training leaves it beside weights: {first_few(description.unread)}."
    if "without" in description.overrides:
        yield f"Left out by hand: {description.overrides['without']}."


def _labels(description: Description) -> str:
    if description.labels:
        return f"{len(description.labels):,}: {first_few(description.labels, most=4)}"
    if description.text_tower:
        return "none: it gives embeddings, or with --labels FILE chooses among the labels in it"
    return "none: it has no head"


def flat(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts, with the parts of a record under its name and a dot."""
    flat = {}
    for name, value in facts.items():
        flat.update({f"{name}.{part}": of for part, of in value.items()} if isinstance(value, dict) else {name: value})
    return flat


def parameters(config: ViTConfig) -> int:
    """How many numbers the network learns, counted on torch's meta device, which allocates no memory."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in VisionTransformer(config).parameters())
