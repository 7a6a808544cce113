"""Learning the class of each image, by cross-entropy."""

import torch.nn.functional as F
from torch import Tensor

from model.fit.batches import Batches
from model.fit.measure import Measured, measure
from model.fit.normalise import normalise
from model.fit.samples import Samples
from model.preprocessing import Preprocessing
from model.vit import VisionTransformer


class Classification:
    """An objective of the loop."""

    def __init__(
        self,
        network: VisionTransformer,
        preprocessing: Preprocessing,
        batches: Batches,
        held_out: Samples | None,
    ) -> None:
        self._network, self._preprocessing = network, preprocessing
        self._batches, self._held_out = batches, held_out

    def loss(self, step: int) -> Tensor:
        device = next(self._network.parameters()).device
        logits = self._network(normalise(self._batches.pixels(step, device), self._preprocessing))
        return F.cross_entropy(logits, self._batches.classes(step, device))

    def measure(self, network: VisionTransformer) -> Measured | None:
        if self._held_out is None:
            return None
        return measure(network, self._held_out, self._preprocessing)
