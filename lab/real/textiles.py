"""What a probe finds on textiles with small defects, by the pixels that it sees and by its images."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from export.calibration import calibration_error
from export.fit.known import read
from export.folder import decoded
from export.image_spec import image_spec
from lab.benchmarks.record import Row, Rows
from lab.real.data import Data
from lab.real.unknown import area
from model.checkpoints import load_checkpoint
from model.fit.groups import near_copies
from model.fit.least_squares import balanced, least_squares
from model.fit.measure import measured
from model.fit.network import with_new_head
from model.fit.probe import ProbeRecipe, probe_temperature
from model.unlike import Unlike

AS_IT_IS = "224 of 256"
PIXELS: dict[str, dict[str, str]] = {  # facts of the checkpoint by what the network sees
    AS_IT_IS: {},
    "224, nothing cut off": {"crop": "none", "resize_mode": "squash", "resize_size": "224,224"},
    "336 of 384": {"image_size": "336,336"},
}
LABELS = ("global", "local", "nominal")
TRIED = (((100, 100, 100), "labels"), ((10, 20, 100), "images"), ((10, 20, 100), "labels"))


class Part(NamedTuple):
    features: Tensor  # what a probe reads, float64 (N, F)
    layers: Tensor  # features of model/unlike.py
    classes: Tensor  # (N,)


def measure(data: Data) -> Rows:
    rows = []
    for pixels, overrides in PIXELS.items():
        train, new = (_read(data, part, overrides) for part in ("train", "test"))
        for counts, alike in TRIED if pixels == AS_IT_IS else TRIED[:1]:
            head: Row = {"pixels": pixels, "images of each": " / ".join(map(str, counts)), "weigh alike": alike}
            rows.append(head | _row(train, new, counts, alike))
    return rows


def _read(data: Data, part: str, overrides: dict[str, str]) -> Part:
    checkpoint, files = load_checkpoint(data.network, overrides=overrides), data.textiles[part]
    preprocessing = checkpoint.preprocessing
    prepared = [image.pixels for _, image in decoded(files, image_spec(preprocessing)) if not isinstance(image, str)]
    network = with_new_head(checkpoint.model, classes=2, image_size=preprocessing.size, read=ProbeRecipe().read)
    layers = read(network, torch.from_numpy(np.stack(prepared)), preprocessing)[0].double()
    classes = torch.tensor([LABELS.index(file.parent.name) for file in files])
    return Part(layers[:, : network.head.in_features], layers, classes)


def _row(train: Part, new: Part, counts: Sequence[int], alike: str) -> Row:
    rows = torch.cat([(train.classes == kind).nonzero().flatten()[:count] for kind, count in enumerate(counts)])
    features, classes = train.features[rows], train.classes[rows]
    groups = near_copies(features, classes)
    weights = balanced(classes) if alike == "labels" else torch.ones(len(classes), dtype=torch.float64)
    head = least_squares(features, classes, count=len(LABELS), groups=groups, weights=weights)
    logits = (new.features @ head.weight.T + head.bias) / probe_temperature(head.left_out, classes)
    nominal = train.classes == LABELS.index("nominal")
    unlike = Unlike.learned(train.layers[nominal], train.classes[nominal])(new.layers).flatten().numpy()
    of_label = {label: (new.classes == kind).numpy() for kind, label in enumerate(LABELS)}
    right = (logits.argmax(1) == new.classes).numpy()
    return {
        "near-copies": int((groups.bincount()[groups] > 1).sum()),
        "accuracy by leaving out, %": round(100 * measured(head.left_out, classes).accuracy, 1),
        "right, %": round(100 * float(right.mean()), 1),
        **{f"{label}, of {rows.sum()}": int(right[rows].sum()) for label, rows in of_label.items()},
        "calibration error, %": round(100 * calibration_error(logits.numpy(), new.classes.numpy()), 1),
        **{
            f"{label} unlike nominal: AUC": round(area(unlike[of_label["nominal"]], unlike[of_label[label]]), 3)
            for label in LABELS[:2]
        },
    }
