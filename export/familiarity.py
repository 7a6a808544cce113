"""What a bundle knows of its images, so that the service can tell how familiar another one is.

In shapes: N known images, n of them held out, F features of model/unlike.py.
"""

import numpy as np
import torch
from torch import Tensor

from app import bundle
from app.bundle import Precision
from app.inference.digits import digits
from app.inference.engine import Engine
from export.agreement import BATCH, Both
from export.images import Images
from export.messages import warn
from model.checkpoints.checkpoint import Checkpoint, KnownImages, first_few
from model.fit.groups import near_copies
from model.progress import track
from model.unlike import Unlike

AS_LEARNED: tuple[Precision, ...] = ("fp32", "fp16")  # whose features are those of PyTorch but for rounding
FEWEST = 40  # held-out images; of fewer, less than two are in a share of 0.05
FOLDS = 10  # of the groups of the held-out images
SHRINKAGE = 2  # images: the offset of a label that has so many is half of what these say


def learn(features: Tensor, classes: Tensor, *, learned: int, groups: Tensor) -> KnownImages | None:
    """Of features (N, F), `classes`, the labels that the model gives (N,), and the `groups` of near-copies (N,). The
    first images, so many as were `learned`, are not like new ones, as the network has learned from them; the others are
    held out. None if these are too few; the reason is written to stderr.

    Each held-out image is compared with the groups of other folds alone, as a new one is compared with all.
    """
    if len(features) - learned < FEWEST:
        _say(f"{len(features) - learned} images are held out, and {FEWEST} are needed")
        return None
    known, apart = features.double(), torch.zeros(len(features), 1, dtype=torch.double)
    judged = torch.arange(len(known)) >= learned
    found = groups[judged].unique()
    for fold in track(range(FOLDS), "comparing known images"):
        in_fold = torch.isin(groups, found[fold::FOLDS])
        apart[in_fold] = Unlike.learned(known[~in_fold], classes[~in_fold])(known[in_fold])
    of_label = classes[judged]
    labels, place, counts = of_label.unique(return_inverse=True, return_counts=True)
    excess = apart[judged, 0] - apart[judged, 0].mean()
    sums = torch.zeros(len(labels), dtype=torch.double).index_add(0, place, excess)
    of_others = (sums[place] - excess) / (counts[place] - 1 + SHRINKAGE)
    return KnownImages(
        pictures=len(known),
        unlike=Unlike.learned(known, classes).float(),
        held_out=(apart[judged, 0] - of_others).sort().values.float(),
        labels=labels,
        offsets=(sums / (counts + SHRINKAGE)).float(),
    )


def brought(checkpoint: Checkpoint, precision: Precision, *, given: bool) -> KnownImages | None:
    """What the checkpoint knows, if its features are those of the bundle. Else, unless images are `given`, the reason
    is written to stderr.
    """
    known = checkpoint.known
    if known and precision in AS_LEARNED and not known.changed_by:
        return known
    if known and not given:
        how = f"with another {first_few(known.changed_by)}" if known.changed_by else f"in {precision}"
        _say(f"features {how} are others than those of the checkpoint. Give --pictures FOLDER")
    return None


def of_folder(given: Images, engine: Engine, both: Both) -> KnownImages | None:
    """From a person's own images, of whose judged ones `both` was computed, by the outputs of the lean graph, in which
    `unlike` stands for the features.
    """
    runs = [engine.run("classify", given.ranges[i : i + BATCH]) for i in range(0, len(given.ranges), BATCH)]
    features = torch.from_numpy(np.concatenate([run["unlike"] for run in (*runs, both.lean)]))
    logits = [run.get("logits", np.zeros((len(run["unlike"]), 1))) for run in (*runs, both.lean)]
    classes = torch.from_numpy(np.concatenate(logits).argmax(1))
    groups = near_copies(features, classes, given.files[: len(features)])
    return learn(features, classes, learned=len(given.ranges), groups=groups)


def described(known: KnownImages, source: bundle.Source) -> bundle.Familiarity:
    return bundle.Familiarity(pictures=known.pictures, held_out=len(known.held_out), source=source)


def held_out(known: KnownImages) -> bundle.HeldOut:
    offsets = dict(zip(known.labels.tolist(), known.offsets.tolist(), strict=True))
    return bundle.HeldOut(unlike=tuple(known.held_out.tolist()), offsets=offsets)


def mean_embedding(known: KnownImages | None, given: Both | None, *, width: int) -> tuple[float, ...]:
    """Of the images that were `given`, else of those that the checkpoint brought, in its first features; else empty."""
    if given:
        mean = given.lean["embedding"].mean(0, dtype=np.float64)
    elif known and not known.changed_by:
        mean = known.unlike.mean[:width].double().numpy()
    else:
        return ()
    return tuple(map(digits, mean))


def _say(reason: str) -> None:
    warn(f"Familiarity is not measured: {reason}.")
