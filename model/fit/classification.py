"""Learning the class of each image, by cross-entropy."""

from contextlib import nullcontext

import torch.nn.functional as F
from torch import Tensor

from model.fit.batches import Batches
from model.fit.chance import Draw, seed_of
from model.fit.dropout import dropout
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
        *,
        dropout_share: float = 0.0,
    ) -> None:
        self._network, self._preprocessing = network, preprocessing
        self._batches, self._held_out, self._dropout_share = batches, held_out, dropout_share

    def loss(self, step: int) -> Tensor:
        device = next(self._network.parameters()).device
        images = normalise(self._batches.pixels(step, device), self._preprocessing)
        seed = seed_of(self._batches.seed, Draw.DROPOUT, step)
        with dropout(self._network, self._dropout_share, seed=seed) if self._dropout_share else nullcontext():
            logits = self._network(images)
        return F.cross_entropy(logits, self._batches.classes(step, device))

    def measure(self, network: VisionTransformer) -> Measured | None:
        if self._held_out is None:
            return None
        return measure(network, self._held_out, self._preprocessing)
