"""Checkpoints of this project: one safetensors file whose metadata holds everything but the tensors."""

import json
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from model.checkpoints.checkpoint import Checkpoint, CheckpointError, Description, KnownImages, Origin
from model.checkpoints.facts import Facts, resolve_score
from model.checkpoints.recipe import FACTS
from model.checkpoints.source import Source
from model.checkpoints.tensors import NOTHING, State
from model.config import ViTConfig
from model.durable import replacing
from model.preprocessing import Preprocessing
from model.unlike import Unlike

FAMILY = "vit-serve"
HEADS = {"head": NOTHING}
KNOWN, UNLIKE = "known.", "unlike."  # before names of tensors beside the weights
AS_LEARNED = {"name", "num_classes", "score"}  # facts that change no feature
STORED = ("name", "labels", "wordnet", "score", "figures", "recipe", "history")  # as they are


def recognises(source: Source) -> bool:
    return FAMILY in source.metadata


def describe(source: Source, facts: Facts) -> Description:
    try:
        stated = json.loads(source.metadata[FAMILY])
    except (ValueError, RecursionError):
        stated = None
    if not isinstance(stated, dict):
        raise CheckpointError(f"the metadata {FAMILY} is not a JSON object: it was not written by this project")
    if unknown := sorted(stated.keys() - {*STORED, "config", "preprocessing"}):
        raise CheckpointError(f"the metadata has {', '.join(unknown)}, which this version does not know")
    try:
        return _described(stated, facts)
    except (TypeError, KeyError) as error:  # fields that are not known, or not there
        raise CheckpointError(f"the metadata is not that of this version: {error}") from None


def _described(stated: dict[str, Any], facts: Facts) -> Description:
    facts.network = Origin.stated("metadata")
    config = ViTConfig.from_json(stated["config"])
    size = facts.resolve("image_size", config.image_size, facts.network)
    return Description(
        name=facts.resolve("name", stated["name"], facts.network),
        family=FAMILY,
        architecture="vit",
        config=replace(config, image_size=size),
        grid=config.grid,
        preprocessing=Preprocessing.from_json(stated["preprocessing"]).resized(size),
        labels=tuple(stated["labels"]),
        wordnet=tuple(stated.get("wordnet", ())),
        origins=dict.fromkeys(FACTS, facts.network),
        score=resolve_score(facts, config.num_classes, said=stated["score"], where="metadata"),
        figures=stated["figures"],
        recipe=stated.get("recipe", {}),
        history=tuple(stated.get("history", ())),
    )


def tensors(state: State, description: Description) -> State:
    """Raises CheckpointError for positions that are not those of the saved grid: no token here has any."""
    assert description.grid
    if "pos_embed" in state and state["pos_embed"].shape[1:2] != (prod(description.grid),):
        raise CheckpointError(f"pos_embed {tuple(state['pos_embed'].shape)} does not fit a grid of {description.grid}")
    return state


def take_known(state: State, description: Description) -> KnownImages | None:
    """Take what was learned of images out of the tensors. None if there is nothing. Raises CheckpointError."""
    known = {name.removeprefix(KNOWN): state.pop(name) for name in [*state] if name.startswith(KNOWN)}
    if not known:
        return None
    of_unlike = {name.removeprefix(UNLIKE): known.pop(name) for name in [*known] if name.startswith(UNLIKE)}
    try:
        features, directions = of_unlike["directions"].shape
        unlike = Unlike(features=features, directions=directions, labels=len(of_unlike["bias"]))
        unlike.load_state_dict(of_unlike)
        pictures, labels = int(known.pop("pictures")), known.pop("labels").long()
        changed_by = tuple(sorted(description.overrides.keys() - AS_LEARNED))
        return KnownImages(pictures=pictures, labels=labels, unlike=unlike, changed_by=changed_by, **known)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"what it knows of its images is not that of this version: {error}") from None


def save(checkpoint: Checkpoint, path: Path) -> None:
    """Write the file that this module loads, whole or not at all. Raises OSError, such as for a full disk."""
    stated = {name: getattr(checkpoint, name) for name in STORED}
    stated["config"] = checkpoint.model.config.to_json()
    stated["preprocessing"] = checkpoint.preprocessing.to_json()
    state = {key: tensor.contiguous() for key, tensor in checkpoint.model.state_dict().items()}
    if checkpoint.known and not checkpoint.known.changed_by:
        state |= _known(checkpoint.known)
    with replacing(path) as temporary:
        try:
            save_file(state, temporary, metadata={FAMILY: json.dumps(stated)})
        except SafetensorError as error:
            raise OSError(f"{path}: {error}") from None


def _known(known: KnownImages) -> State:
    tensors = {name: getattr(known, name) for name in ("held_out", "labels", "offsets")}
    tensors |= {f"{UNLIKE}{name}": tensor for name, tensor in known.unlike.state_dict().items()}
    tensors["pictures"] = torch.tensor(known.pictures)
    return {f"{KNOWN}{name}": tensor.float().contiguous() for name, tensor in tensors.items()}
