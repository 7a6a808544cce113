"""Images that a timm network reads: their channels, their size, and what becomes of pixels that fit no patch."""

from collections.abc import Iterator
from typing import Any

from model.checkpoints.checkpoint import CheckpointError, Origin
from model.checkpoints.facts import Facts
from model.checkpoints.families.openclip import CONFIG
from model.checkpoints.families.timm_architectures import Architecture
from model.checkpoints.families.timm_layers import grid_of_file
from model.checkpoints.families.timm_network import network, patch_side
from model.checkpoints.source import Source
from model.checkpoints.tensors import pair
from model.preprocessing import Preprocessing


def check_channels(source: Source, architecture: Architecture, stated: dict[str, Any]) -> None:
    """Raises CheckpointError for a network of other channels than red, green and blue; `stated` is of config.json."""
    for name, channels in _channels(source, architecture, stated):
        if channels != 3:
            raise CheckpointError(
                f"{architecture.name} has {name}={channels}: supported are 3, which are red, green and blue"
            )


def _channels(source: Source, architecture: Architecture, stated: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What the tensors, config.json and the command line of train.py say, by name."""
    yield "in_chans", architecture.arguments["in_chans"]
    first = "patch_embed.proj.weight"
    if first in source and architecture.arguments.get("embed_layer") is None and len(source.shape(first)) == 4:
        yield "in_chans", source.shape(first)[1]
    for places in (source.arguments, stated):
        if isinstance(size := places.get("input_size"), list | tuple):
            yield "in_chans", size[0]
        yield from ((name, places[name]) for name in ("in_chans", "chans") if places.get(name) is not None)


def image_size(
    source: Source,
    config: dict[str, Any],
    facts: Facts,
    architecture: Architecture,
    changes: dict[str, Any],
    stated: dict[str, Any],
    published: dict[str, dict[str, Any]],
) -> tuple[int, int]:
    """(height, width) as stated, else from the positions in the file, else as published.

    Raises CheckpointError for images of a size that timm's network refuses.
    """
    built = changes.get("img_size")
    size_of_input = source.arguments.get("input_size")  # channels, height and width in timm's train.py; BEiT's: a side
    given = size_of_input[1:] if isinstance(size_of_input, list | tuple) else size_of_input
    given = given or source.arguments.get("img_size")
    of_config = stated["input_size"][1:] if "input_size" in stated else None
    if not (architecture.arguments.get("dynamic_img_size") or stated.get("fixed_input_size")):
        _check_size(facts, architecture, given or of_config, built=built)
    if built is not None and not architecture.arguments.get("dynamic_img_size"):
        size, origin = (
            built,
            Origin.stated("config.json" if source.config else CONFIG if config else "args in the file"),
        )
    elif given:
        size, origin = given, Origin.stated("args in the file")
    elif of_config:
        size, origin = of_config, Origin.stated("config.json")
    else:
        tag, recipe = next(iter(published.items()))
        size, origin = recipe["input_size"][1:], Origin.guessed(f"timm, {tag}")
        side = patch_side(architecture) or 1
        covered = (size[0] - size[0] % side, size[1] - size[1] % side)
        usual = network(architecture, image_size=covered, num_classes=1)
        by_hand = "image_size" in facts.overrides  # then a table that is not square may fit
        grid = None if by_hand else grid_of_file(source, architecture, usual)
        if grid is not None and grid != usual.grid:
            size, origin = [side * usual.patch_size for side in grid], Origin.read("number of positions")
    return facts.resolve("image_size", pair(size), origin)


def _check_size(facts: Facts, architecture: Architecture, of_images: Any, *, built: Any) -> None:
    """Raises CheckpointError where timm builds a network for images of one size, and images have another."""
    made_for = pair(architecture.arguments["img_size"])
    if of_images is None or pair(of_images) == made_for or "image_size" in facts.overrides:
        return
    side = patch_side(architecture) or 1
    if built is not None or any(pixels % side for pixels in pair(of_images)):
        raise CheckpointError(
            f"images have {_text(of_images)} pixels and {architecture.name} is made for {_text(made_for)}, which timm "
            f"refuses: --set image_size={made_for[0]},{made_for[1]}, or another size of whole patches, settles it"
        )


def in_whole_patches(recipe: Preprocessing, architecture: Architecture) -> Preprocessing:
    """The same; a network of one size leaves out the pixels that fit no patch, as timm's does.

    Raises CheckpointError where timm fills them up to whole patches, and where it refuses such images.
    """
    side, size = patch_side(architecture), recipe.cropped
    if not side or not any(pixels % side for pixels in size):
        return recipe
    if architecture.arguments.get("dynamic_img_pad"):
        reason = "and dynamic_img_pad fills them up, which is not supported"
    elif architecture.arguments.get("dynamic_img_size"):
        reason = "and with dynamic_img_size timm refuses them"
    else:
        return recipe.in_patches(side)
    whole = ",".join(str(max(pixels - pixels % side, side)) for pixels in size)
    raise CheckpointError(
        f"images of {_text(size)} pixels are not whole patches of {side}, {reason}: --set image_size={whole} serves "
        "whole ones"
    )


def _text(size: Any) -> str:
    height, width = pair(size)
    return f"{height} x {width}"
