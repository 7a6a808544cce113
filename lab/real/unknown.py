"""How well familiarity and other distances tell images of a kind that was not learned from those of kinds that were."""

from collections import defaultdict

import numpy as np
import numpy.typing as npt
import torch

from app.inference.familiarity import Familiarity, Numbers
from export.image_spec import image_spec
from export.images import pixels as prepared
from lab.benchmarks.record import Row, Rows
from lab.real.bundles import pixels
from lab.real.data import Data
from lab.real.distances import DISTANCES
from lab.real.frozen import read
from lab.real.strange import KINDS
from model.checkpoints import load_checkpoint
from model.fit.least_squares import least_squares

FOLDS = 5  # of the stamps: each is in turn an image like those that were learned
LEAST = 0.05  # familiarity
LIKE, LEFT_OUT, HARDEST = "like the learned ones", "a kind left out", "the hardest kind"
SEEN = "a probe that has learned to tell them"  # no distance can do as well
Shares = dict[str, list[float]]  # by the set of images


def measure(data: Data) -> Rows:
    """Areas under the ROC curve, and shares of images that are turned away."""
    files = [*data.stamps["train"], *data.stamps["test"]]
    checkpoint = load_checkpoint(data.network)
    spec = image_spec(checkpoint.preprocessing)

    def embedded(images: npt.NDArray[np.uint8]) -> Numbers:
        return read(checkpoint, images).double().numpy()

    stamps, kinds = embedded(pixels(data, files)), np.array([file.parent.name for file in files])
    strange = {name: embedded(prepared(spec, images(data))) for name, images in KINDS.items()}
    areas: dict[str, Shares] = {name: defaultdict(list) for name in (*DISTANCES, SEEN)}
    refused: Shares = defaultdict(list)
    for place, left_out in enumerate((None, *np.unique(kinds))):
        known = kinds != left_out
        sets = strange if left_out is None else {str(left_out): stamps[~known]}
        for one, of_set in sets.items():
            areas[SEEN][one].append(_seen(stamps[known], of_set))
        for fold in range(FOLDS) if left_out is None else (place % FOLDS,):
            held_out = known & (_folds(kinds) == fold)
            learned, classes = stamps[known & ~held_out], np.unique(kinds[known & ~held_out], return_inverse=True)[1]
            for name, distance in DISTANCES.items():
                apart = distance(learned, classes, np.concatenate([stamps[held_out], *sets.values()]))
                like, *others = np.split(apart, np.cumsum([held_out.sum(), *map(len, sets.values())])[:-1])
                for one, of_set in zip(sets, others, strict=True):
                    areas[name][one].append(_area(like, of_set))
            familiarity = Familiarity.learn(learned[:0], learned, classes)
            for one, of_set in {LIKE: stamps[held_out], **sets}.items():
                refused[one].append(float(np.mean([familiarity.of(image) < LEAST for image in of_set])))
    return [
        *({"": f"{name}: AUC", **_row(shares, np.unique(kinds), 3)} for name, shares in areas.items()),
        {"": f"turned away at {LEAST}, %", **_row(refused, np.unique(kinds), 1, times=100)},
    ]


def _row(shares: Shares, kinds: npt.NDArray[np.str_], digits: int, *, times: float = 1) -> Row:
    means = {name: times * float(np.mean(of_folds)) for name, of_folds in shares.items()}
    left_out = [means.pop(kind) for kind in kinds]
    like = means.pop(LIKE, None)
    first = {LIKE: "" if like is None else like, LEFT_OUT: float(np.mean(left_out)), HARDEST: min(left_out)}
    return {name: share if share == "" else round(float(share), digits) for name, share in (first | means).items()}


def _folds(kinds: npt.NDArray[np.str_]) -> npt.NDArray[np.int64]:
    """The fold of each image; those of a kind are spread over all."""
    folds, rng = np.zeros(len(kinds), np.int64), np.random.default_rng(0)
    for kind in np.unique(kinds):
        (of_kind,) = np.nonzero(kinds == kind)
        folds[rng.permutation(of_kind)] = np.arange(len(of_kind)) % FOLDS
    return folds


def _seen(like: Numbers, unlike: Numbers) -> float:
    """The area of a linear map that has learned the difference, from all images but the one that it judges."""
    unlikely = torch.arange(len(like) + len(unlike)) >= len(like)
    rows = torch.from_numpy(np.concatenate([like, unlike]))
    found = least_squares(rows, unlikely.long(), count=2).left_out[:, 1].numpy()
    return _area(found[: len(like)], found[len(like) :])


def _area(like: Numbers, unlike: Numbers) -> float:
    """Under the ROC curve: how often one of the unlike is further away than one of the others."""
    return float((unlike[:, np.newaxis] > like).mean() + (unlike[:, np.newaxis] == like).mean() / 2)
