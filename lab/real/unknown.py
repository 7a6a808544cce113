"""How well familiarity tells images of a kind that was not learned, and of nothing like them, from those of kinds that
were learned.
"""

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from app.inference.familiarity import Familiarity
from export.familiarity import held_out, learn
from export.fit.known import read
from export.image_spec import image_spec
from export.images import pixels as prepared
from lab.benchmarks.record import Row, Rows
from lab.real.bundles import pixels
from lab.real.data import Data
from lab.real.strange import KINDS
from model.checkpoints import load_checkpoint
from model.fit.groups import near_copies
from model.fit.least_squares import least_squares
from model.fit.network import with_new_head
from model.fit.probe import ProbeRecipe
from model.unlike import Unlike

FOLDS = 5  # of the stamps: each is in turn an image like those that were learned
LEAST = 0.05  # familiarity
LIKE, LEFT_OUT, HARDEST = "like the learned ones", "a kind left out", "the hardest kind"
SERVED = "familiarity"
SEEN = "a probe that has learned to tell them"  # no distance can do as well
Shares = dict[str, list[float]]  # by the set of images
Numbers = npt.NDArray[np.floating]


def measure(data: Data) -> Rows:
    """Areas under the ROC curve, and shares of images that are turned away."""
    files = [*data.stamps["train"], *data.stamps["test"]]
    checkpoint = load_checkpoint(data.network)
    preprocessing = checkpoint.preprocessing
    network = with_new_head(checkpoint.model, classes=2, image_size=preprocessing.size, read=ProbeRecipe().read)

    def features(images: npt.NDArray[np.uint8]) -> Tensor:
        return read(network, torch.from_numpy(images), preprocessing)[0].double()

    stamps, kinds = features(pixels(data, files)), np.array([file.parent.name for file in files])
    strange = {name: features(prepared(image_spec(preprocessing), images(data))) for name, images in KINDS.items()}
    areas: dict[str, Shares] = defaultdict(lambda: defaultdict(list))
    refused: Shares = defaultdict(list)
    of_label: Shares = defaultdict(list)
    for left_out in (None, *np.unique(kinds)):
        known = kinds != left_out
        sets = strange if left_out is None else {str(left_out): stamps[~known]}
        for one, of_set in sets.items():
            areas[SEEN][one].append(_seen(stamps[known], of_set))
        for fold in range(FOLDS):
            like = known & (_folds(kinds) == fold)
            learned = stamps[known & ~like]
            classes = torch.from_numpy(np.unique(kinds[known & ~like], return_inverse=True)[1])
            unlike = Unlike.learned(learned, classes)
            of_like = _unlike(unlike, stamps[like])
            for one, of_set in sets.items():
                for name, found in _unlike(unlike, of_set).items():
                    areas[name][one].append(area(of_like[name], found))
            familiar = _familiar(learned, classes)
            for one, of_set in sets.items():
                refused[one].append(float((familiar(of_set) < LEAST).mean()))
            if left_out is None:
                turned_away = familiar(stamps[like]) < LEAST
                refused[LIKE].append(float(turned_away.mean()))
                for kind in np.unique(kinds):
                    of_label[kind].append(float(turned_away[kinds[like] == kind].mean()))
    most = max(float(np.mean(shares)) for shares in of_label.values())
    areas[SEEN] = areas.pop(SEEN)  # as the last row
    turned = _row(refused, np.unique(kinds), 1, times=100)
    return [
        *({"": f"{name}: AUC", **_row(shares, np.unique(kinds), 3)} for name, shares in areas.items()),
        {"": f"turned away at {LEAST}, %", **turned},
        {"": "of the label of which most are, %", **dict.fromkeys(turned, ""), LIKE: round(100 * most, 1)},
    ]


def _unlike(unlike: Unlike, images: Tensor) -> dict[str, Numbers]:
    """By several orders, the larger the more unlike."""
    outside, logits = unlike.parts(images)
    orders = {
        SERVED: unlike(images),
        "of it, the length outside": outside,
        "of it, the energy of the labels": -logits.logsumexp(1),
        "the best label's score": -logits.softmax(1).amax(1),
    }
    return {name: numbers.flatten().numpy() for name, numbers in orders.items()}


def _familiar(learned: Tensor, classes: Tensor) -> Callable[[Tensor], Numbers]:
    """The service's familiarity of images, by the labels that are read from their features."""
    known = learn(learned, classes, learned=0, groups=near_copies(learned, classes))
    assert known
    familiarity, unlike = Familiarity(held_out=held_out(known)), known.unlike.double()

    def of(images: Tensor) -> Numbers:
        outputs = unlike(images).numpy(), unlike.parts(images)[1].numpy()
        of_all = [familiarity.of({"unlike": one, "logits": logits}) for one, logits in zip(*outputs, strict=True)]
        return np.array(of_all)

    return of


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


def _seen(like: Tensor, unlike: Tensor) -> float:
    """The area of a linear map that has learned the difference, from all images but the one that it judges."""
    unlikely = torch.arange(len(like) + len(unlike)) >= len(like)
    found = least_squares(torch.cat([like, unlike]), unlikely.long(), count=2).left_out[:, 1].numpy()
    return area(found[: len(like)], found[len(like) :])


def area(like: Numbers, unlike: Numbers) -> float:
    """Under the ROC curve: how often one of the unlike is further away than one of the others."""
    return float((unlike[:, np.newaxis] > like).mean() + (unlike[:, np.newaxis] == like).mean() / 2)
