"""Networks before they meet the task: what each has learned, from how many shapes, and how it knows positions."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lab.study.images import PRE_TRAINING, shapes
from model.config import ViTConfig
from model.fit.augment import Augmentation
from model.fit.masked import MaskedRecipe, masked
from model.fit.network import initialised
from model.fit.pretrain import PretrainRecipe, pretrain
from model.variants import POSITIONS
from model.vit import VisionTransformer
from tests.support import samples

SIDE = 32  # pixels
SMALL = ViTConfig(image_size=(SIDE, SIDE), patch_size=8, width=32, depth=2, mlp_dim=128, heads=2, num_classes=0)
LARGE = replace(SMALL, width=64, depth=4, mlp_dim=256, heads=4)
PREPROCESSING = replace(samples.PREPROCESSING.resized(SMALL.image_size), std=(0.5,) * 3)
STEPS, BATCH, RATE = 2_000, 128, 2e-3  # however few images there are
CROPS = Augmentation(least_area=0.7, flip=True)


@dataclass(frozen=True, kw_only=True)
class Backbone:
    learned: Literal["nothing", "labels", "masked patches"]
    images: int = PRE_TRAINING  # drawn shapes; a network that has learned nothing has seen none
    config: ViTConfig = LARGE
    positions: str = "1-D"
    seed: int = 0

    def network(self, work: Path) -> VisionTransformer:
        """What was learned before is read from the folder `work`, where what is learned now is kept."""
        config = replace(self.config, **POSITIONS[self.positions])
        if self.learned == "nothing":
            return initialised(config, self.seed)
        train = shapes(work, "pre-training", count=self.images, side=SIDE)
        epochs = STEPS * BATCH / self.images
        place = work / f"{self.learned}-{self.images}-{self.config.width}-{self.positions}-{self.seed}"
        if self.learned == "masked patches":
            recipe = MaskedRecipe(seed=self.seed, rate=RATE, epochs=epochs, batch=BATCH, augmentation=CROPS)
            return masked(config, PREPROCESSING, train, None, recipe, work=place).model
        labelled = PretrainRecipe(seed=self.seed, rate=RATE, epochs=epochs, batch=BATCH, augmentation=CROPS)
        return pretrain(config, PREPROCESSING, train, None, labelled, work=place).model
