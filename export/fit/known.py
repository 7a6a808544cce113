"""What a learned model knows of its images, so that a bundle can tell how familiar another one is, without them."""

from math import ceil

import torch
from torch import Tensor

from export.fit.dataset import Dataset
from model.checkpoints.checkpoint import KnownImages
from model.fit.fitted import Fitted
from model.fit.network import best_device
from model.fit.probe import features
from model.fit.samples import Samples
from model.preprocessing import Preprocessing

MOST = 1024  # images of each part, chosen evenly: as many numbers as a small part of the weights


def known_images(fitted: Fitted, dataset: Dataset, preprocessing: Preprocessing) -> KnownImages:
    """Embeddings of both parts. Images to learn from that are larger than the network's input are left out."""
    network = fitted.model.to(best_device())

    def embedded(samples: Samples) -> Tensor:
        some = slice(None, None, _step(len(samples)))
        return features(network, Samples(pixels=samples.pixels[some], classes=samples.classes[some]), preprocessing)

    train, held_out = dataset.train.samples, embedded(dataset.held_out.samples)
    if fitted.features is not None:
        frozen = torch.cat([fitted.features[:: _step(len(train))], held_out])
        known = KnownImages(learned=frozen[:0], held_out=frozen)
    elif train.size == preprocessing.size:
        known = KnownImages(learned=embedded(train), held_out=held_out)
    else:
        known = KnownImages(learned=held_out[:0], held_out=held_out)
    fitted.model.cpu()
    return known


def _step(images: int) -> int:
    return max(1, ceil(images / MOST))
