"""What near-copies do to a probe that leaves each image out, and to one that leaves out groups."""

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image, ImageEnhance
from torch import Tensor

from export.calibration import calibration_error
from lab.benchmarks.learning.sets import digits
from lab.benchmarks.record import Row, Rows
from lab.real.data import Data
from lab.real.doubt import with_errors
from lab.real.frozen import Frozen, read_files
from model.checkpoints import load_checkpoint
from model.demo.__main__ import WEIGHTS
from model.fit.doubt import CLEAR, doubts
from model.fit.groups import near_copies
from model.fit.least_squares import least_squares
from model.fit.measure import measured
from model.fit.probe import probe_temperature

SEEDS = 20
LEARNED, JUDGED = 150, 350  # digits
TIMES = 3  # that each digit is there
TURN, BRIGHTNESS, NOISE = 4, 0.1, 0.05  # degrees, share, and share of the deviation of each feature, at most
WRONG = 8  # digits whose label is made wrong, in all of their copies


class Set(NamedTuple):
    features: Tensor  # (digits, copies, F)
    judged: Tensor  # (n, F)
    names: bool  # whether copies are called after their original


def measure(_: Data) -> Rows:
    once, changed = _features()
    rows: dict[tuple[str, str], list[list[float]]] = {}
    for seed in range(SEEDS):
        chance = torch.Generator().manual_seed(seed)
        learned, judged = torch.randperm(len(once.classes), generator=chance).split((LEARNED, JUDGED))
        original, new = once.features[:, None], once.features[judged]
        noise = NOISE * once.features.std(0) * torch.randn(LEARNED, TIMES, once.features.shape[1], generator=chance)
        variants = changed.features.unflatten(0, (-1, TIMES))
        sets = {
            "once": Set(original[learned], new, names=False),
            "three copies with 5 % noise": Set(original[learned] + noise, new, names=False),
            "three variants, as Roboflow saves them": Set(variants[learned], variants[judged, 0], names=True),
            "the same under other names": Set(variants[learned], variants[judged, 0], names=False),
        }
        for name, images in sets.items():
            for grouped in (False, True):
                found = _judged(images, once.classes[learned], once.classes[judged], seed, grouped=grouped)
                rows.setdefault((name, "its group" if grouped else "each image"), []).append(found)
    return [_row(*key, np.mean(found, axis=0).tolist()) for key, found in rows.items()]


def _row(name: str, left_out: str, means: list[float]) -> Row:
    names = ("accuracy by leaving out, %", "right, %", "mean score, %", "calibration error, %")
    shares = {title: round(100 * mean, 1) for title, mean in zip(names, means[:4], strict=True)}
    counts = zip(("made wrong", "found among as many first", "named", "rightly"), means[4:], strict=True)
    return {
        f"{LEARNED} digits": name,
        "left out": left_out,
        **shares,
        **{title: round(mean, 1) for title, mean in counts},
    }


def _features() -> tuple[Frozen, Frozen]:
    """Digits in one order, and TIMES variants of each."""
    demo, rng = load_checkpoint(WEIGHTS, overrides={"num_classes": "0"}), np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as place:
        digits(Path(place, "all"), 0)
        originals = rng.permutation(sorted(Path(place, "all").glob("*/*/*.png")))[: LEARNED + JUDGED].tolist()
        files = []
        for file in originals:
            with Image.open(file) as image:
                for number in range(TIMES):
                    turned = image.convert("RGB").rotate(rng.uniform(-TURN, TURN), Image.Resampling.BICUBIC)
                    factor = rng.uniform(1 - BRIGHTNESS, 1 + BRIGHTNESS)
                    files.append(Path(place, "variants", file.parent.name, f"{file.stem}_{number}.png"))
                    files[-1].parent.mkdir(parents=True, exist_ok=True)
                    ImageEnhance.Brightness(turned).enhance(factor).save(files[-1])
        return read_files("once", demo, originals), read_files("variants", demo, files)


def _judged(images: Set, classes: Tensor, right: Tensor, seed: int, *, grouped: bool) -> list[float]:
    """The figures of a row. Labels are made wrong after the others are measured."""
    features, copies = images.features.flatten(0, 1), images.features.shape[1]
    names = [Path(f"{number}.rf.{copy}.png") for number in range(len(classes)) for copy in range(copies)]

    def learned(given: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of each image without its group, and of the images to judge by."""
        groups = near_copies(features, given, names if images.names else ()) if grouped else None
        head = least_squares(features, given, count=int(right.max()) + 1, groups=groups)
        hardness = probe_temperature(head.left_out, given)
        return head.left_out / hardness, (images.judged.double() @ head.weight.T + head.bias) / hardness

    given = classes.repeat_interleave(copies)
    left_out, logits = learned(given)
    changed, wrong = with_errors(classes, WRONG, seed)
    given, wrong = changed.repeat_interleave(copies), wrong.repeat_interleave(copies)
    doubt = doubts(learned(given)[0], given)
    first, clear = doubt.argsort(descending=True)[: int(wrong.sum())], doubt >= CLEAR
    return [
        measured(left_out, classes.repeat_interleave(copies)).accuracy,
        measured(logits, right).accuracy,
        logits.softmax(1).amax(1).mean().item(),
        calibration_error(logits.numpy(), right.numpy()),
        *(int(count.sum()) for count in (wrong, wrong[first], clear, clear & wrong)),
    ]
