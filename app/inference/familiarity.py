"""How familiar an image is: the share of held-out images that are less like those that the model knows.

An image is the less like them, the larger its relative Mahalanobis distance (Ren et al. 2021, arXiv 2106.09022): that
to the nearest mean of a class, less that to the mean of all. Doubt of which class is the nearest makes it larger. The
share is a conformal p-value (Vovk et al. 2005): of images like the held-out ones, at most the share s has a familiarity
of s or less. Each held-out image was compared with the images of other folds alone, as a new one is compared with all;
with few images, these are nearer.

In shapes: N known images, n of them held out, M others, C classes, F features.
"""

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from app.bundle import FAMILIARITY, Bundle
from app.errors import UnfamiliarImage

NO_IMAGES = (
    "this bundle does not know its images: export it from a checkpoint of `make fit`, or with PICTURES=folder. Then "
    "results have `familiarity`"
)
SHRINKAGE = 0.5  # of covariances, to multiples of the unit matrix: images are often fewer than features
TEMPERATURE = 0.04  # of distances, for each feature; with it, they are about how unlikely classes are
CONSTANT = 1e-6  # of the largest standard deviation: a number that varies less says nothing
FOLDS = 10  # of the held-out images

Numbers = npt.NDArray[np.floating]
Classes = npt.NDArray[np.integer]


@dataclass(frozen=True, kw_only=True, eq=False)
class Distance:
    """x becomes z = (x - mean) * scale, and its distance to each class z @ matrix @ z + offsets - directions @ z.

    That to all is the least of them, d, and the doubt: -T log p, where p is the part of d in softmax(-distances / T).
    """

    mean: Numbers  # (F,)
    scale: Numbers  # (F,), 1 / standard deviation
    matrix: Numbers  # (F, F), symmetric
    directions: Numbers  # (C, F)
    offsets: Numbers  # (C,)

    @classmethod
    def to(cls, known: Numbers, classes: Classes) -> Self:
        """From images to the known ones (N, F) of these classes (N,). Where all are of one, it is the Mahalanobis
        distance to their mean.
        """
        mean, deviation = known.mean(0), known.std(0)
        varies = deviation > CONSTANT * deviation.max()
        scale = np.where(varies, 1 / np.where(varies, deviation, 1), 0)
        z = (known - mean) * scale
        names, place = np.unique(classes, return_inverse=True)
        means = np.stack([z[place == name].mean(0) for name in range(len(names))])
        within = _inverse(z - means[place])
        scaled = means @ within
        return cls(
            mean=mean,
            scale=scale,
            matrix=within if len(names) == 1 else within - _inverse(z),
            directions=2 * scaled,
            offsets=(scaled * means).sum(1),
        )

    def of(self, rows: Numbers) -> Numbers:
        """Of embeddings (M, F): (M,).

        In loops of NumPy: after a product of BLAS its threads spin for 25 ms on every core, here for each image.
        """
        z = (rows - self.mean) * self.scale
        to_classes = self.offsets - np.einsum("mf,cf->mc", z, self.directions)  # (M, C), less what they share
        nearest, unit = to_classes.min(1), TEMPERATURE * len(self.mean)
        doubt = np.log(np.exp((nearest[:, np.newaxis] - to_classes) / unit).sum(1))
        of_all: Numbers = (np.einsum("mf,fg->mg", z, self.matrix) * z).sum(1) + nearest + unit * doubt
        return of_all


@dataclass(frozen=True, kw_only=True, eq=False)
class Familiarity:
    distance: Distance
    held_out: Numbers  # (n,), distances of held-out images, in rising order

    @classmethod
    def learn(cls, learned: Numbers, held_out: Numbers, classes: Classes) -> Self:
        """`learned` are embeddings (N - n, F) that are not those of new images, as the network has learned from them,
        `held_out` others (n, F), and `classes` the labels that the model gives both (N,).
        """
        known = np.concatenate([learned, held_out]).astype(np.float64)
        folds = np.concatenate([np.full(len(learned), FOLDS), np.arange(len(held_out)) % FOLDS])
        distances = np.zeros(len(known))
        for fold in range(FOLDS):
            others = folds != fold
            distances[~others] = Distance.to(known[others], classes[others]).of(known[~others])
        return cls._of((*astuple(Distance.to(known, classes)), np.sort(distances[len(learned) :])))

    def of(self, embedding: Numbers, *, least: float = 0.0) -> float:
        """From 1 / (n + 1) to 1, of an image with this embedding (F,). Raises UnfamiliarImage below `least`."""
        (distance,) = self.distance.of(embedding[np.newaxis])
        no_nearer = len(self.held_out) - int(np.searchsorted(self.held_out, distance))
        familiarity = (1 + no_nearer) / (1 + len(self.held_out))
        if familiarity < least:
            raise UnfamiliarImage.below(least, familiarity)
        return familiarity

    def write(self, file: Path) -> None:
        with file.open("wb") as out:
            for array in (*astuple(self.distance), self.held_out):
                np.save(out, array, allow_pickle=False)

    @classmethod
    def read(cls, file: Path) -> Self:
        with file.open("rb") as arrays:
            return cls._of(np.load(arrays, allow_pickle=False) for _ in range(6))

    @classmethod
    def _of(cls, arrays: Iterable[Numbers]) -> Self:
        """In the order of the fields."""
        mean, scale, matrix, directions, offsets, held_out = (array.astype(np.float32) for array in arrays)
        distance = Distance(mean=mean, scale=scale, matrix=matrix, directions=directions, offsets=offsets)
        return cls(distance=distance, held_out=held_out)


def open_familiarity(bundle: Bundle) -> Familiarity | None:
    """None if the bundle does not know its images."""
    return Familiarity.read(bundle.folder / FAMILIARITY) if bundle.manifest.familiarity else None


def _inverse(rows: Numbers) -> Numbers:
    """Of the covariance of rows (N, F) with the mean 0, shrunk."""
    covariance = rows.T @ rows / len(rows)
    features = len(covariance)
    even = max(np.trace(covariance) / features, CONSTANT)
    inverse: Numbers = np.linalg.inv((1 - SHRINKAGE) * covariance + SHRINKAGE * even * np.eye(features))
    return inverse
