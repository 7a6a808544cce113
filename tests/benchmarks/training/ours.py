"""Steps of model/fit/loop.py."""

import sys

import torch.nn.functional as F
from torch import Tensor

from model.fit.loop import Course, learn
from model.fit.optimiser import optimiser
from model.fit.schedule import cosine
from model.fit.snapshot import Snapshot
from model.variants import variant
from model.vit import VisionTransformer
from tests.benchmarks.training.pace import CLASSES, CLIP, RATE, STEPS, WEIGHT_DECAY, Pace, device


class Paced:
    """The same batch at every step."""

    def __init__(self, network: VisionTransformer, pace: Pace) -> None:
        self._network, self._pace = network, pace
        self._images, self._classes = pace.samples()

    def loss(self, step: int) -> Tensor:
        self._pace.begin()
        return F.cross_entropy(self._network(self._images), self._classes)

    def measure(self, network: VisionTransformer) -> None:
        """Nothing is held out."""


def main() -> None:
    network = VisionTransformer(variant(sys.argv[1], num_classes=CLASSES)).to(device())
    course = Course(steps=STEPS, steps_per_epoch=STEPS, schedule=cosine, warm_up=100, clip=CLIP)
    adam = optimiser(network, rate=RATE, weight_decay=WEIGHT_DECAY)
    unsaved = Snapshot(None, "training", identity={})
    learn(network, Paced(network, Pace()), course, [adam], title="training", snapshot=unsaved)


if __name__ == "__main__":
    main()
