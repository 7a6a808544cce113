"""The facts of a checkpoint and their sources: what `python -m export inspect CHECKPOINT` and an export print."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from textwrap import fill
from typing import Any

import torch

from model.checkpoints.checkpoint import Description, Origin, first_few
from model.checkpoints.facts import BY_HAND, MISSING, typed
from model.config import ViTConfig
from model.vit import VisionTransformer

SOURCES = ("missing", "guessed", "by hand", "stated", "read")
WIDTH, INDENT = 120, 9  # characters
Facts = Mapping[str, tuple[Any, Origin]]  # value and origin of each, by name


def summary(description: Description) -> str:
    """What a checkpoint is, in a line."""
    size = f"{parameters(description.config) / 1e6:.2f} M parameters"
    kind = f"{description.family}, {description.architecture}"
    return f"{description.name}: {kind}, {size}, {_labels(description)}"


def facts_of(description: Description) -> Facts:
    """Each fact of what is served, what is missing and guesses first. Layers that are not there have none."""
    config = description.config
    absent = {
        "stem_numerics": config.stem_layers is None,
        "position_resize": config.positions == "none" and not config.relative_bias,
        **dict.fromkeys(("representation", "representation_bias"), config.representation_size is None),
        **dict.fromkeys(("head", "head_bias", "distillation_head", "labels", "score"), not config.num_classes),
    }
    values = {
        **{name: text for name, text in description.overrides.items() if name != "name"},
        "architecture": description.architecture,
        **config.to_json(),
        **description.preprocessing.to_json(),
        "labels": len(description.labels),
        "prompts": description.prompts,
        "score": description.score,
    }
    found = {name: (values[name], origin) for name, origin in description.origins.items() if name in values}
    present = [(name, fact) for name, fact in found.items() if not absent.get(name) and fact[0] is not None]
    return dict(sorted(present, key=lambda fact: SOURCES.index(_source(fact[1][1]))))


def unusual(description: Description) -> Facts:
    """The facts without those that the tensors show and that are as in most networks."""
    usual = {field.name: field.default for field in fields(description.config)}
    facts = facts_of(description).items()
    return {name: fact for name, fact in facts if fact[1].source != "read" or usual.get(name, MISSING) != fact[0]}


def learned(description: Description) -> Facts:
    """How a checkpoint of this project was learned, and what was measured."""
    stated = flat({"recipe": description.recipe, "figures": description.figures})
    return {name: (value, Origin.stated("metadata")) for name, value in stated.items()}


def table(facts: Facts) -> str:
    """Lines of facts by their sources. Behind a colon is where they are from."""
    places: dict[str, dict[str, list[str]]] = {}
    for name, (value, origin) in facts.items():
        where = "" if origin in (BY_HAND, MISSING) else f": {origin.where}"
        known = name if origin == MISSING else f"{name}={typed(value)}"
        places.setdefault(_source(origin), {}).setdefault(where, []).append(known)
    return "\n".join(
        fill(
            ", ".join(known) + where,
            WIDTH,
            initial_indent=("" if line else source).ljust(INDENT),
            subsequent_indent=" " * (INDENT + 2),
            break_on_hyphens=False,
        )
        for source, of_source in places.items()
        for line, (where, known) in enumerate(of_source.items())
    )


def about_weights(description: Description) -> Iterator[str]:
    """Sentences on which weights of the file were taken, and what of it was left out."""
    if description.weights:
        yield f"Weights: {description.weights}."
    if description.unread:
        yield f"Left out, as training leaves it beside weights: {first_few(description.unread)}."
    if "without" in description.overrides:
        yield f"Left out by hand: {description.overrides['without']}."


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


def _source(origin: Origin) -> str:
    return origin.where if origin == MISSING else origin.source


def _labels(description: Description) -> str:
    if description.labels:
        return f"{len(description.labels):,} labels: {first_few(description.labels, most=4)}"
    if description.text_tower:
        return "embeddings, or with --labels FILE the labels in it"
    return "embeddings, as there is no head"
