"""Preprocessing as facts: found in a file, fixed by a library, or set by a person; always checked."""

from dataclasses import replace

from model.checkpoints.checkpoint import CheckpointError, Origin
from model.checkpoints.facts import Facts
from model.checkpoints.statements import Said
from model.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Channels, Interpolation, Preprocessing

PIXEL = 255  # the largest in 8 bits
FACTS = ("resize_mode", "resize_size", "crop", "interpolation", "mean", "std")  # that a person can set


def imagenet(side: int, *, resized: int, interpolation: Interpolation) -> Preprocessing:
    """A square of `side` pixels from the middle of an image whose shorter side becomes `resized`."""
    whole = squashed((side, side), interpolation, mean=IMAGENET_MEAN, std=IMAGENET_STD)
    return replace(whole, resize_mode="shortest", resize_size=(resized, resized), crop="center")


def squashed(size: tuple[int, int], kind: Interpolation, *, mean: Channels, std: Channels) -> Preprocessing:
    """A resize to (height, width) regardless of the aspect."""
    return Preprocessing(
        size=size, resize_mode="squash", resize_size=size, crop="none", interpolation=kind, mean=mean, std=std
    )


def resolve_recipe(
    facts: Facts, recipe: Preprocessing, origin: Origin, *, sized_by: Origin | None = None
) -> Preprocessing:
    """The recipe that was found, with what a person has set instead; another image size scales the resize with it.

    `sized_by` is the origin of the size where it is another.
    Raises CheckpointError for a recipe whose results differ in size.
    """
    size = facts.resolve("image_size", recipe.size, sized_by or origin)
    resized = facts.said_of("resize_size")
    scaled = (replace(recipe, resize_size=resized.value) if resized else recipe).resized(size)
    origins = dict.fromkeys(FACTS, origin)
    if share := _share(facts):
        if scaled.crop == "none":
            raise CheckpointError(
                f"{share.where} says crop_pct {share.value}, and by {origin.where} nothing is cut off"
            )
        scaled = _leaving(scaled, share.value)
        origins["resize_size"] = Origin.stated(share.where)
    found = {name: facts.resolve(name, getattr(scaled, name), origins[name]) for name in FACTS}
    if resized:  # for the size of the file
        found["resize_size"] = scaled.resize_size
    return checked(replace(scaled, **found), facts)


def need_recipe(facts: Facts, why: str, *, example: Preprocessing, of: str) -> Preprocessing:
    """The recipe that a person has set, for images of the size of the `example`, which is `of` something.

    `why` says that the checkpoint has none.
    """
    example = example.resized(facts.resolve("image_size", example.size, Origin.read("the network")))
    if share := _share(facts):
        example = _leaving(example, share.value)
    why = f"{why}. By hand it is set as in this example, {of}, unless the model was trained with another"
    values = dict(zip(FACTS, facts.need({name: getattr(example, name) for name in FACTS}, why=why), strict=True))
    recipe = replace(example, **values)
    return recipe if facts.missing else checked(recipe, facts)  # examples may contradict what is set


def _share(facts: Facts) -> Said | None:
    """The share of each side that the crop leaves, if the file says it and no person has set the resize."""
    return None if "resize_size" in facts.overrides else facts.said_of("crop_pct")


def _leaving(recipe: Preprocessing, share: float) -> Preprocessing:
    """With a resize of which the crop leaves this share of each side."""
    height, width = (int(side / share) for side in recipe.size)
    return replace(recipe, resize_size=(height, width))


def checked(recipe: Preprocessing, facts: Facts) -> Preprocessing:
    """The same recipe. Raises CheckpointError if its results differ in size, or if mean or std are set by hand for
    pixels from 0 to 255: here they are from 0 to 1.
    """
    by_hand = {name: getattr(recipe, name) for name in ("mean", "std") if name in facts.overrides}
    if any(value > 1 for values in by_hand.values() for value in values):
        given, divided = (
            " ".join(f"--set {name}={','.join(f'{value / by:.6g}' for value in by_hand[name])}" for name in by_hand)
            for by in (1, PIXEL)
        )
        raise CheckpointError(f"{given}: pixels are from 0 to 1 here. For pixels from 0 to {PIXEL} this is {divided}")
    resized = recipe.resize_size  # with "shortest", an image covers it
    if recipe.crop == "none" and (recipe.resize_mode == "shortest" or resized != recipe.cropped):
        raise CheckpointError(
            f"a {recipe.resize_mode} resize to {resized} without a crop does not give every image {recipe.cropped}"
            " pixels"
        )
    if any(side > available for side, available in zip(recipe.cropped, resized, strict=True)):
        raise CheckpointError(
            f"a crop of {recipe.cropped} is larger than the image it is cut from, which is resized to {resized}"
        )
    return recipe
