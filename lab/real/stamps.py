"""What evidence for another image shows: two stamps are pasted on a photograph, and the other image shows one of them.

Everything is computed from one run of the explaining graph for each direction, as evidence is linear in it.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image
from tqdm import tqdm

from app.bundle import TOKENS, Manifest, load_bundle
from app.inference.engine import Asked, Engine, Outputs, Pixels
from app.maps.direction import towards
from app.maps.faithfulness import ranked
from export.bundle import write_bundle
from export.judge.masks import Patches, patches_on
from export.judge.table import HOTTEST
from lab.benchmarks.bundle_engine import open_engine
from lab.benchmarks.record import Rows
from lab.real.data import Data
from lab.real.pasted import cut_out, ground, paste, photographs, somewhere
from model.checkpoints import load_checkpoint

PICTURES = 40
SIDES = (224, 336)
STAMP, ON_WHITE = 96 / 224, 0.75  # the longer side of a stamp, in sides of the image
LIKE = ("the same stamp", "another of its kind")
Values = npt.NDArray[np.floating]


class Shown(NamedTuple):
    pixels: Pixels
    on: tuple[Patches, ...]  # patches on each of its stamps


class Picture(NamedTuple):
    image: Shown
    likes: tuple[Shown, Shown]  # one of its stamps on white, and another of its kind
    other: Shown  # the other stamp on white


class Network(NamedTuple):
    engine: Engine
    manifest: Manifest

    def embedding(self, shown: Shown) -> Values:
        return self.engine.run("classify", [shown.pixels])["embedding"][0]

    def tokens(self, shown: Shown) -> Values:
        """Of the patches, (patches, features), of length 1."""
        patches = self.engine.run("tokens", [shown.pixels])[TOKENS][0, len(self.manifest.tokens.prefix) :]
        return patches / np.linalg.norm(patches, axis=1, keepdims=True)

    def explained(self, shown: Shown, like: Values, against: Values | None) -> Outputs:
        outputs = self.engine.run("explain", [shown.pixels], [Asked((), towards(like, against))])
        return {name: rows[0] for name, rows in outputs.items()}


def measure(data: Data) -> Rows:
    found: dict[str, dict[str, str | float]] = {}
    for side in SIDES:
        checkpoint = load_checkpoint(data.network, overrides={"image_size": f"{side},{side}"})
        with tempfile.TemporaryDirectory() as place:
            bundle = Path(place, "bundle")
            write_bundle(checkpoint, bundle, replace=False)
            network = Network(open_engine(bundle), load_bundle(bundle).manifest)
            for name, cells in of_side(data, network, side).items():
                found[name] = {"map": name, **found.get(name, {}), **cells}
    return [*found.values()]


def of_side(data: Data, network: Network, side: int) -> dict[str, dict[str, str | float]]:
    made = [*pictures(data, network.manifest, side)]
    embeddings = [
        [network.embedding(one) for one in (picture.image, *picture.likes, picture.other)] for picture in made
    ]
    mean = np.mean([one for of_picture in embeddings for one in of_picture], axis=0)
    shares: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for picture, (_, *of_likes, of_other) in zip(tqdm(made, desc=f"{side} pixels"), embeddings, strict=True):
        for name, like, of_like in zip(LIKE, picture.likes, of_likes, strict=True):
            for title, values in maps(network, picture, like, of_like, of_other, mean).items():
                hottest = ranked(values)[:HOTTEST]
                shares.setdefault((title, name), []).append(tuple(float(on[hottest].mean()) for on in picture.image.on))
    rows: dict[str, dict[str, str | float]] = {}
    for (title, name), of_pictures in shares.items():
        right, other = np.mean(of_pictures, axis=0)
        rows.setdefault(title, {})[f"{name}, {side} pixels"] = f"{right:.2f} / {other:.2f}"
    return rows


def maps(
    network: Network, picture: Picture, like: Shown, of_like: Values, of_other: Values, mean: Values
) -> dict[str, Values]:
    """(patches,) by name."""
    prefix = len(network.manifest.tokens.prefix)
    plain = network.explained(picture.image, of_like, None)
    of_mean, of_others = (network.explained(picture.image, of_like, one)["evidence"][0] for one in (mean, of_other))
    rollout, tokens = plain["rollout"], network.tokens(picture.image)
    layers = {"": slice(None)}
    found = {
        "evidence": plain["evidence"][0].sum(0),
        "evidence against the mean": of_mean.sum(0),
        "evidence against the other stamp": of_others.sum(0),
        "positive evidence against the mean": np.maximum(of_mean, 0).sum(0) * rollout,
        "positive evidence against the other stamp": np.maximum(of_others, 0).sum(0) * rollout,
        "class token (last layer)": plain["attention"][-1].mean(0),
    }
    for l in range(-4, 0):
        found[f"evidence against the mean, layer {l}"] = of_mean[l]
        found[f"evidence against the other stamp, layer {l}"] = of_others[l]
    found = {name: values[prefix:] for name, values in found.items()}
    unit = of_like / np.linalg.norm(of_like)
    found["cosine of patches with the embedding"] = tokens @ unit
    found["cosine of patches less that with the mean"] = tokens @ towards(of_like, mean)[0]
    found["cosine of patches less that with the other"] = tokens @ towards(of_like, of_other)[0]
    theirs = network.tokens(like)[like.on[0]]
    found["nearest patch of the other object"] = (tokens @ theirs.T).max(1)
    tm = theirs.mean(0)
    found["cosine with mean patch of the object"] = tokens @ (tm / np.linalg.norm(tm))
    oth = network.tokens(picture.other)[picture.other.on[0]].mean(0)
    found["cosine with mean patch of the object against other"] = tokens @ (towards(tm, oth)[0])
    return found


def pictures(data: Data, manifest: Manifest, side: int) -> Iterator[Picture]:
    rng, photos = np.random.default_rng(0), photographs(data)
    files = [*data.cut_out["train"], *data.cut_out["test"]]
    for _ in range(PICTURES):
        one = files[rng.integers(len(files))]
        another = _other(files, rng, lambda file, one=one: file.parent.name == one.parent.name and file != one)
        other = _other(files, rng, lambda file, one=one: file.parent.name != one.parent.name)
        image = ground(photos, side, rng)
        stamps = [cut_out(file, STAMP * side) for file in (one, other)]
        while True:
            places = [somewhere(stamp, side, rng) for stamp in stamps]
            if any(abs(a - b) >= STAMP * side for a, b in zip(*places, strict=True)):
                break
        things = [paste(stamp, image, place) for stamp, place in zip(stamps, places, strict=True)]
        shown = _shown(image, things, manifest)
        yield Picture(
            shown, (on_white(one, manifest, side), on_white(another, manifest, side)), on_white(other, manifest, side)
        )


def _other(files, rng, fits):
    fitting = [file for file in files if fits(file)]
    return fitting[rng.integers(len(fitting))]


def on_white(file: Path, manifest: Manifest, side: int) -> Shown:
    image, stamp = Image.new("RGB", (side, side), "white"), cut_out(file, ON_WHITE * side)
    place = ((side - stamp.width) // 2, (side - stamp.height) // 2)
    return _shown(image, [paste(stamp, image, place)], manifest)


def _shown(image: Image.Image, things: list[Image.Image], manifest: Manifest) -> Shown:
    masks = [patches_on(np.asarray(thing.convert("RGB")), manifest) for thing in things]
    assert all(mask is not None for mask in masks)
    return Shown(np.asarray(image), tuple(mask for mask in masks if mask is not None))
