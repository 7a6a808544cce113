"""The facts of a checkpoint and their origins as text: `python -m export inspect CHECKPOINT`."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from model.checkpoints.checkpoint import Description, Origin, first_few
from model.checkpoints.facts import MISSING
from model.config import ViTConfig
from model.vit import VisionTransformer


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
    return origin.where if origin.where == f"set {origin.source}" else f"{origin.source}: {origin.where}"


def table(rows: Sequence[tuple[str, str, str]]) -> str:
    """One row per line: name, value, origin."""
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
        return f"{len(description.labels)}: {', '.join(description.labels[:4])}, ..."
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
