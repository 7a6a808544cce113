"""What a network is to learn in the end, from how many images, and how right it is then on others."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lab.study.backbone import PREPROCESSING, SIDE
from lab.study.images import few, shapes
from model.fit.augment import Augmentation
from model.fit.finetune import FinetuneRecipe, finetune
from model.fit.measure import measure
from model.fit.probe import ProbeRecipe, probe
from model.fit.samples import Samples
from model.vit import VisionTransformer
from tests.support.scans import digits

BATCH = 64
CROPS = Augmentation(least_area=0.7, flip=False)


@dataclass(frozen=True, kw_only=True)
class Task:
    images: Literal["digits", "shapes"] = "digits"
    each: int | None = None  # images of each class to learn from; None: all
    method: Literal["as it is", "few-shot", "fine-tuning"] = "fine-tuning"
    side: int = SIDE  # pixels of the images
    steps: int = 300
    rate: float = 1e-3
    seed: int = 0  # chooses the few images, and their order
    choosing: bool = False  # judge by a fifth of the images to learn from, and learn from the others

    def accuracy(self, network: VisionTransformer, work: Path) -> float:
        """Of the last weights, on images that they were not learned from."""
        train, held_out = self.parts(work)
        preprocessing = PREPROCESSING.resized((self.side, self.side))
        if self.method == "as it is":
            return measure(network, held_out, preprocessing).accuracy
        if self.method == "few-shot":
            fitted = probe(network, preprocessing, train, ProbeRecipe())
        else:
            how = FinetuneRecipe(seed=self.seed, rates=(self.rate,), batch=BATCH, augmentation=CROPS)
            recipe = replace(how, epochs=self.steps / math.ceil(len(train) / BATCH))
            fitted = finetune(network, preprocessing, train, None, recipe)
        return measure(fitted.model, held_out, preprocessing).accuracy

    def parts(self, work: Path) -> tuple[Samples, Samples]:
        if self.images == "digits":
            train, held_out = digits(self.side)
        else:
            train, held_out = (shapes(work, part, side=self.side) for part in ("fine-tuning", "held out"))
        if self.choosing:
            train, held_out = _split(train)
        return (train if self.each is None else few(train, self.each, seed=self.seed)), held_out


def _split(samples: Samples) -> tuple[Samples, Samples]:
    """Four fifths and the last fifth; samples are in no order."""
    at = len(samples) * 4 // 5
    pixels, classes = samples.pixels, samples.classes
    return Samples(pixels=pixels[:at], classes=classes[:at]), Samples(pixels=pixels[at:], classes=classes[at:])
