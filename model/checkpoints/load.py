"""Loads a checkpoint of any family. Loading fails, with a name, unless every tensor is used."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from model.checkpoints import batch_norm, zero_shot
from model.checkpoints.checkpoint import Checkpoint, CheckpointError, Description, Origin, first_few
from model.checkpoints.facts import BY_HAND, LEFT_OUT, Facts, resolve_score
from model.checkpoints.families import huggingface, native
from model.checkpoints.families.huggingface_images import said_beside
from model.checkpoints.family import Family, recognise
from model.checkpoints.heads import settle
from model.checkpoints.hub import SCHEME, fetch
from model.checkpoints.labels import Labels, choose
from model.checkpoints.source import Source
from model.checkpoints.statements import not_used
from model.checkpoints.tensors import State, about_unused, assign, doubt_of_patches, fit_positions
from model.checkpoints.texts import load_texts
from model.checkpoints.values import check_values
from model.vit import VisionTransformer

LONGEST_NAME = 200  # characters, as app/bundle.py has it
HEADS = r"head(_dist)?\."  # how the names of the tensors of heads begin, whatever layers they have


@contextmanager
def _trusting() -> Iterator[None]:
    """Loaders trust a file to be as its library writes it. What they raise if it is not becomes a CheckpointError."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError) as error:
        why = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise CheckpointError(f"the checkpoint is not as its library writes it ({why})") from error


@_trusting()
def load_checkpoint(
    path: str | Path,
    *,
    overrides: dict[str, str] | None = None,
    labels: str | None = None,
    prompts: tuple[str, ...] = (),
    without: Sequence[str] = (),
    text: bool = False,
) -> Checkpoint:
    """The network with its weights, preprocessing and labels. Raises CheckpointError with the reason.

    `overrides` are facts by name; `labels` is a file with names of the classes, or "none" to number them. For a model
    with a text tower the file has the labels to choose among, and `prompts` are sentences with {} in their place.
    Without the head, by the override num_classes=0, nothing about it is asked for. Tensors whose names in the file
    match a pattern of `without`, such as "criterion.*", are left out. With `text` the text tower is loaded too.
    """
    # Where two threads make a process's first call of MKL's vector functions, some of its numbers are off by 1e-3.
    torch.ones(1).sqrt()
    source, family, description = _described(
        path, overrides, labels, prompts, without, tokeniser=text or labels is not None
    )
    if description.problems:
        raise CheckpointError("; ".join(description.problems))
    head = zero_shot.head(source.folder, description) if description.prompts else {}
    tensors = {**family.tensors(source.tensors(), description), **head}
    known = native.take_known(tensors, description) if family is native else None
    model = VisionTransformer(description.config)
    check_values(tensors, model.state_dict(), source)
    try:
        fit_positions(tensors, description.config, description.grid)
    except ValueError as error:
        raise CheckpointError(f"{source.name}: {error}") from None
    assign(model, _served(tensors, description), source.names_in_file)
    if isinstance(model.head, nn.Linear) and not model.head.weight.any():
        raise CheckpointError(
            "the head is all zeros: the file was published for fine-tuning and would give every label the same score."
            f" {LEFT_OUT}"
        )
    texts = load_texts(source.file, source.folder, description) if text else None
    return Checkpoint(**vars(description), model=model.eval(), known=known, texts=texts)


@_trusting()
def describe_checkpoint(
    path: str | Path,
    *,
    overrides: dict[str, str] | None = None,
    labels: str | None = None,
    prompts: tuple[str, ...] = (),
    without: Sequence[str] = (),
) -> Description:
    """Everything but the weights, of which at most positions and vectors are read. Raises CheckpointError if nothing
    can be said.

    If only some facts are missing, `problems` says so, what is wrong with the labels, and which tensors have no place.
    """
    source, family, description = _described(path, overrides, labels, prompts, without)
    try:
        unused = {} if description.problems else _unused(source, family, description)
    except CheckpointError as error:
        return replace(description, problems=(str(error),))
    if not unused:
        return description
    return replace(description, problems=(f"unused: {first_few(sorted(unused))}{about_unused(unused)}",))


def _unused(source: Source, family: Family, description: Description) -> dict[str, Tensor]:
    """The tensors that the network has no place for, without values, by their names in the file. None are known where
    a family looks at values.
    """
    try:
        tensors = _served(family.tensors(source.outlines(), description), description)
    except RuntimeError:  # of torch: there is nothing to look at on its meta device
        return {}
    with torch.device("meta"):
        expected = VisionTransformer(description.config).state_dict()
    names = tensors.keys() - expected.keys()
    known = {name for name in names if family is native and name.startswith(native.KNOWN)}
    return {source.names_in_file.get(name, name): tensors[name] for name in names - known}


def _served(tensors: State, description: Description) -> State:
    """The tensors, without a head that is not served."""
    if "num_classes" in description.overrides and not description.config.num_classes:
        return {name: tensor for name, tensor in tensors.items() if not re.match(HEADS, name)}
    return tensors


def _described(
    path: str | Path,
    overrides: dict[str, str] | None,
    labels: str | None,
    prompts: tuple[str, ...],
    without: Sequence[str],
    *,
    tokeniser: bool = False,
) -> tuple[Source, Family, Description]:
    """The checkpoint at a file, a folder, or a repository of the Hugging Face Hub, hf://org/name@revision."""
    given = dict(overrides or {})
    name = None
    if str(path).startswith(SCHEME):
        name = str(path).removeprefix(SCHEME)
        path = fetch(name, tokeniser=tokeniser)
    source = Source(Path(path), name=name, weights=given.get("weights"), without=without)
    family, description = _describe(source, given, labels, prompts)
    if without:
        description.overrides["without"] = " ".join(without)
        try:
            whole = Source(Path(path), name=name, weights=given.get("weights"))
            _, other = _describe(whole, given, labels, prompts)
        except CheckpointError:
            return source, family, description  # what is left out is why the whole file cannot be described
        _check_same_network(other.config.to_json(), description.config.to_json())
    return source, family, description


def _check_same_network(whole: dict[str, Any], left: dict[str, Any]) -> None:
    """Raises CheckpointError if what --without leaves out is a part of the network."""
    if changed := [name for name in whole if whole[name] != left[name]]:
        name = changed[0]
        raise CheckpointError(
            f"--without leaves out a part of the network: {name} is {whole[name]}, and would be {left[name]}"
            + (". --set num_classes=0 leaves the head out" if name == "num_classes" else "")
        )


def _describe(
    source: Source, overrides: dict[str, str], labels: str | None, prompts: tuple[str, ...]
) -> tuple[Family, Description]:
    source.check_plain()
    family = recognise(source, overrides)
    said = () if family is native else source.said  # which is its own metadata
    facts = Facts(overrides, said if family in (native, huggingface) else (*said, *said_beside(source)))
    try:
        if "weights" in overrides:
            facts.origins["weights"] = BY_HAND
        if facts.serves_head:
            batch_norm.fold(source, facts)
        advice = settle(source, family.HEADS, served=facts.serves_head)
        description = family.describe(source, facts)
        if source.foreign_head:
            advice += f" It reads what the network gives without a head: pool {description.config.pool}."
        if source.follows and "mean" not in overrides:
            advice += (
                f" The network is part {source.follows} of an nn.Sequential, and what stands before it has no weights. "
                "If it normalises pixels, give its --set mean= and --set std=."
            )
        if "name" not in facts.origins:
            description = replace(
                description, name=facts.resolve("name", source.name, Origin.read("name of the checkpoint"))
            )
        if "name" in overrides and not 0 < len(overrides["name"]) <= LONGEST_NAME:
            raise CheckpointError(f"--set name=NAME: give it 1 to {LONGEST_NAME} characters")
        if "score" not in facts.origins:
            description = replace(description, score=resolve_score(facts, description.config.num_classes))
        description = _without_head(description, facts)
        if family is not native and description.config.num_classes and (alone := _without_bias(source)):
            description = replace(description, config=replace(description.config, head_bias=False))
            advice += f" {alone} has no bias beside it: the head is served without one."
        _check_patches(description, facts)
        facts.check_overrides()
    except (CheckpointError, ValueError) as error:  # ValueError: facts are out of range or contradictory
        if facts.missing:  # what an example stands for may be the cause
            raise CheckpointError("; ".join(facts.missing)) from None
        raise CheckpointError(f"{source.name}: {error}" if isinstance(error, ValueError) else str(error)) from None
    description.origins.update(facts.origins | facts.unseen(description.config))
    description.overrides.update(facts.overrides)
    if left := not_used(facts.said, description.origins):
        advice += f" {left}"
    problems = list(facts.missing)
    try:
        description = _labelled(description, source.class_names, labels, prompts)
    except CheckpointError as error:
        if not problems:
            raise
        problems.append(str(error))
    return family, replace(
        description,
        weights=source.chosen,
        unread=tuple(source.unread),
        advice=" ".join(filter(None, (description.advice, advice.strip()))),
        problems=tuple(problems),
    )


def _check_patches(description: Description, facts: Facts) -> None:
    """Ask for an image size that positions alone tell, if they may be those of overlapping patches."""
    config = description.config
    read = facts.origins["image_size"].source == "read"
    if read and (why := doubt_of_patches(description.grid, config.patch_size)):
        facts.need({"image_size": config.image_size}, why=why)


def _labelled(
    description: Description, beside: dict[str, Any], labels: str | None, prompts: tuple[str, ...]
) -> Description:
    """The description with the labels of the file `labels`, or else with a label for each class. `beside` may have
    names of them.
    """
    if description.text_tower and labels is not None:
        return zero_shot.with_classes(description, given=labels, prompts=prompts)
    if prompts:
        raise CheckpointError(
            "--prompt TEXT needs --labels FILE, with the labels to choose among"
            if description.text_tower
            else "--prompt: the checkpoint has no text tower, which CLIP and SigLIP have, to read it"
        )
    if not description.config.num_classes:
        if labels is not None:
            raise CheckpointError("--labels: the model has no head, so it has no classes to name")
        return replace(description, labels=(), wordnet=(), labels_from="")
    own = Labels(description.labels, description.labels_from, description.wordnet, problem=description.labels_problem)
    chosen = choose(description.config.num_classes, own, beside=beside, dataset=description.dataset, given=labels)
    make = partial(Origin, "by hand") if labels is not None else Origin.guessed if chosen.advice else Origin.stated
    description.origins["labels"] = make(chosen.origin or "metadata")
    return replace(
        description, labels=chosen.names, wordnet=chosen.wordnet, labels_from=chosen.origin, labels_advice=chosen.advice
    )


def _without_head(description: Description, facts: Facts) -> Description:
    """The description, without the head if a person has set num_classes to 0. Raises CheckpointError for another
    number.
    """
    classes = description.config.num_classes
    chosen = facts.resolve("num_classes", classes, Origin.read("rows of the head" if classes else "there is no head"))
    if chosen not in (0, classes):
        raise CheckpointError(f"--set num_classes={chosen}: the head has {classes:,} classes; 0 leaves the head out")
    return replace(description, config=replace(description.config, num_classes=chosen))


def _without_bias(source: Source) -> str:
    """The weight, as the file calls it, of a linear head without a bias; empty for any other head."""
    if {"head.bias", "head_dist.bias"} & {*source.names}:
        return ""
    return next((source.names_in_file[name] for name in ("head.weight", "head.kernel") if name in source), "")
