"""Learning the class of each image, by cross-entropy."""

from contextlib import nullcontext
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Classification:
    """An objective of the loop."""

    network: VisionTransformer
    preprocessing: Preprocessing
    batches: Batches
    held_out: Samples | None
    dropout_share: float = 0.0

    def loss(self, step: int) -> Tensor:
        device = next(self.network.parameters()).device
        images = normalise(self.batches.pixels(step, device), self.preprocessing)
        seed = seed_of(self.batches.seed, Draw.DROPOUT, step)
        with dropout(self.network, self.dropout_share, seed=seed) if self.dropout_share else nullcontext():
            logits = self.network(images)
        return F.cross_entropy(logits, self.batches.classes(step, device))

    def measure(self, network: VisionTransformer) -> Measured | None:
        return None if self.held_out is None else measure(network, self.held_out, self.preprocessing)
