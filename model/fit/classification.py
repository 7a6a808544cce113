"""Learning the class of each image, by cross-entropy."""

import torch.nn.functional as F
from torch import Tensor

from model.fit.augment import Augmentation, augmented
from model.fit.batches import Batches
from model.fit.chance import Draw, generator
from model.fit.measure import Measured, measure
from model.fit.normalise import normalise
from model.fit.samples import Samples
from model.preprocessing import Preprocessing
from model.vit import VisionTransformer


class Classification:
    """An objective of the loop. Every batch depends on the seed and its step alone."""

    def __init__(
        self,
        network: VisionTransformer,
        preprocessing: Preprocessing,
        train: Samples,
        held_out: Samples | None,
        *,
        batches: Batches,
        augmentation: Augmentation,
    ) -> None:
        self._network, self._preprocessing = network, preprocessing
        self._train, self._held_out = train, held_out
        self._batches, self._augmentation = batches, augmentation

    def loss(self, step: int) -> Tensor:
        rows, device = self._batches.rows(step), next(self._network.parameters()).device
        chance = generator(self._batches.seed, Draw.AUGMENTATION, step)
        pixels = augmented(self._train.pixels[rows].to(device), self._preprocessing.size, self._augmentation, chance)
        logits = self._network(normalise(pixels, self._preprocessing))
        return F.cross_entropy(logits, self._train.classes[rows].to(device))

    def measure(self, network: VisionTransformer) -> Measured | None:
        if self._held_out is None:
            return None
        return measure(network, self._held_out, self._preprocessing)
