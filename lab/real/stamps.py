"""What evidence for another image shows: two stamps are pasted on a photograph, and the other image shows one of them.

The images that are compared with are stamps on white; the mean is that of all images here.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from PIL import Image
from tqdm import tqdm

from app.bundle import TOKENS, Manifest, load_bundle
from app.inference.engine import Asked, Engine, Outputs, Pixels
from app.inference.unit import unit
from app.maps import measured
from app.maps.faithfulness import ranked
from app.maps.measured import PASSES, Masks
from export.bundle import write_bundle
from export.judge.masks import Patches, patches_on
from export.judge.table import HOTTEST
from lab.benchmarks.bundle_engine import open_engine
from lab.benchmarks.record import Row, Rows
from lab.real.data import Data
from lab.real.pasted import cut_out, ground, paste, photographs, somewhere
from lab.real.under_masks import under_masks
from model.checkpoints import load_checkpoint

PICTURES = 40
SIDES = (224, 336)
MEASURED = 224  # the side at which maps are measured too, which takes as many runs as all others together
STAMP, ON_WHITE = 96 / 224, 0.75  # the longer side of a stamp, in sides of the image
LIKE = ("the same stamp", "another of its kind")
Values = npt.NDArray[np.floating]


class Shown(NamedTuple):
    pixels: Pixels
    on: list[Patches]  # patches on each of its stamps


class Picture(NamedTuple):
    image: Shown
    likes: tuple[Shown, Shown]  # one of its stamps on white, and another of its kind
    other: Shown  # the other stamp on white


class Network(NamedTuple):
    engine: Engine
    manifest: Manifest
    masks: Masks

    @classmethod
    def of(cls, bundle: Path) -> Self:
        manifest = load_bundle(bundle).manifest
        return cls(open_engine(bundle), manifest, Masks.of(manifest.tokens.grid, PASSES))

    def embedding(self, shown: Shown) -> Values:
        """Of length 1."""
        return unit(self.engine.run("classify", [shown.pixels])["embedding"][0])

    def embeddings(self, shown: Shown) -> Values:
        """(PASSES, features), each of length 1: of the image under each mask."""
        outputs = under_masks(self.engine, self.manifest, shown.pixels, self.masks)
        return unit(outputs["embedding"])

    def patches(self, shown: Shown) -> Values:
        """Their tokens (patches, features), each of length 1."""
        return unit(self.engine.run("tokens", [shown.pixels])[TOKENS][0, len(self.manifest.tokens.prefix) :])

    def explained(self, shown: Shown, direction: Values) -> Outputs:
        asked = Asked((), direction.astype(np.float32)[np.newaxis])
        return {name: rows[0] for name, rows in self.engine.run("explain", [shown.pixels], [asked]).items()}


def measure(data: Data) -> Rows:
    found: dict[str, Row] = {}
    for side in SIDES:
        checkpoint = load_checkpoint(data.network, overrides={"image_size": f"{side},{side}"})
        with tempfile.TemporaryDirectory() as place:
            bundle = Path(place, "bundle")
            write_bundle(checkpoint, bundle, replace=False)
            shares = _shares(data, Network.of(bundle), side)
        for (title, name), of_pictures in shares.items():
            right, other = np.mean(of_pictures, axis=0)
            found.setdefault(title, {"map": title})[f"{name}, {side} pixels"] = f"{right:.2f} / {other:.2f}"
    first, *_ = found.values()
    return [{title: row.get(title, "") for title in first} for row in found.values()]


def _shares(data: Data, network: Network, side: int) -> dict[tuple[str, str], list[list[float]]]:
    """Of the hottest patches on each of the two stamps, by map and what the image is compared with."""
    made = [*pictures(data, network.manifest, side)]
    embeddings = [[*map(network.embedding, (picture.image, *picture.likes, picture.other))] for picture in made]
    mean = unit(np.mean(np.concatenate(embeddings), axis=0))
    shares: dict[tuple[str, str], list[list[float]]] = {}
    for picture, (_, *of_likes, of_other) in zip(tqdm(made, desc=f"{side} pixels"), embeddings, strict=True):
        vectors = {"the mean": mean, "the other stamp": of_other}
        less = {title: network.explained(picture.image, vector)["evidence"][0] for title, vector in vectors.items()}
        masked = network.embeddings(picture.image) if side == MEASURED else None
        for name, like, of_like in zip(LIKE, picture.likes, of_likes, strict=True):
            found = _maps(network, picture.image, like, of_like, less)
            if masked is not None:
                for title, vector in vectors.items():
                    of_masks = measured.measure(masked @ (of_like - vector), network.masks)
                    found[f"measured against {title}"] = of_masks.values.ravel()
            for title, values in found.items():
                hottest = ranked(values)[:HOTTEST]
                shares.setdefault((title, name), []).append([on[hottest].mean() for on in picture.image.on])
    return shares


def _maps(network: Network, image: Shown, like: Shown, of_like: Values, less: dict[str, Values]) -> dict[str, Values]:
    """(patches,), by name; `less` is evidence for what is subtracted, which is linear in its direction."""
    explained = network.explained(image, of_like)
    evidence, rollout = explained["evidence"][0], explained["rollout"]
    found = {"evidence": evidence.sum(0)}
    found |= {f"evidence against {name}": (evidence - other).sum(0) for name, other in less.items()}
    found |= {f"the same, layer={layer}": (evidence - less["the other stamp"])[layer] for layer in (-1, -2)}
    found |= {
        f"positive evidence against {name}": np.maximum(evidence - other, 0).sum(0) * rollout
        for name, other in less.items()
    }
    found["class token (last layer)"] = explained["attention"][-1].mean(0)
    found = {name: tokens[len(network.manifest.tokens.prefix) :] for name, tokens in found.items()}
    patches = network.patches(image)
    found["cosine of patches with the other embedding"] = patches @ of_like
    found["cosine with the nearest patch of the other object"] = (patches @ network.patches(like)[like.on[0]].T).max(1)
    return found


def pictures(data: Data, manifest: Manifest, side: int) -> Iterator[Picture]:
    """The same every time."""
    rng, photos = np.random.default_rng(0), photographs(data)
    kinds: dict[str, list[Path]] = {}
    for file in (*data.cut_out["train"], *data.cut_out["test"]):
        kinds.setdefault(file.parent.name, []).append(file)
    for _ in range(PICTURES):
        kind, of_other = rng.permutation([*kinds])[:2]
        one, another = (kinds[kind][place] for place in rng.permutation(len(kinds[kind]))[:2])
        other = kinds[of_other][rng.integers(len(kinds[of_other]))]
        image = ground(photos, side, rng)
        stamps = [cut_out(file, STAMP * side) for file in (one, other)]
        places = [somewhere(stamp, side, rng) for stamp in stamps]
        while not any(abs(a - b) >= STAMP * side for a, b in zip(*places, strict=True)):  # one would cover the other
            places = [somewhere(stamp, side, rng) for stamp in stamps]
        things = [paste(stamp, image, place) for stamp, place in zip(stamps, places, strict=True)]
        yield Picture(
            _shown(image, things, manifest),
            (_on_white(one, manifest, side), _on_white(another, manifest, side)),
            _on_white(other, manifest, side),
        )


def _on_white(file: Path, manifest: Manifest, side: int) -> Shown:
    image, stamp = Image.new("RGB", (side, side), "white"), cut_out(file, ON_WHITE * side)
    place = ((side - stamp.width) // 2, (side - stamp.height) // 2)
    return _shown(image, [paste(stamp, image, place)], manifest)


def _shown(image: Image.Image, things: list[Image.Image], manifest: Manifest) -> Shown:
    masks = (patches_on(np.asarray(thing.convert("RGB")), manifest) for thing in things)
    return Shown(np.asarray(image), [mask for mask in masks if mask is not None])
