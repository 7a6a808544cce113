"""What a learned model knows of its images, so that a bundle can tell how familiar another one is, without them."""

from math import ceil

import torch
from torch import Tensor

from export.familiarity import learn
from export.fit.dataset import Dataset, Part
from model.checkpoints.checkpoint import KnownImages
from model.fit.fitted import Fitted
from model.fit.groups import near_copies
from model.fit.measure import CHUNK, network_input
from model.fit.network import best_device
from model.preprocessing import Preprocessing
from model.progress import track
from model.unlike import features
from model.vit import VisionTransformer

MOST = 1024  # images of each part, chosen evenly


def known_images(fitted: Fitted, dataset: Dataset, preprocessing: Preprocessing) -> KnownImages | None:
    """Of both parts; None if there are too few. Images to learn from that are larger than the network's input are left
    out. A network that was left as it was has learned from none, so all are held out.
    """
    train, held_out = dataset.train, dataset.held_out
    parts = [train, held_out] if train.samples.size == preprocessing.size else [held_out]
    network = fitted.model.to(best_device())
    of_parts = [read(network, part.samples.pixels[:: _step(part)], preprocessing) for part in parts]
    fitted.model.cpu()
    of_all, classes = (torch.cat(column) for column in zip(*of_parts, strict=True))
    files = [file for part in parts for file in part.files[:: _step(part)]]
    learned = 0 if fitted.features is not None else len(of_all) - len(of_parts[-1][0])
    return learn(of_all, classes, learned=learned, groups=near_copies(of_all, classes, files))


def _step(part: Part) -> int:
    return max(1, ceil(len(part.files) / MOST))


@torch.inference_mode()
def read(network: VisionTransformer, pixels: Tensor, preprocessing: Preprocessing) -> tuple[Tensor, Tensor]:
    """Of pixels (N, height, width, 3) the features of the images, float32 (N, F), and the labels that the model gives
    them, (N,).
    """
    device = next(network.parameters()).device
    of_all, classes = [], []
    for chunk in track(pixels.split(CHUNK), "reading features"):
        streams = network.layers(network_input(chunk, preprocessing, device))
        tokens = network.normed(streams)
        of_all.append(features(network.config, streams[:-1], network.embedding(tokens)).cpu())
        labelled = network.config.num_classes > 0
        classes.append(network.classify(tokens).argmax(1).cpu() if labelled else torch.zeros(len(chunk)).long())
    return torch.cat(of_all), torch.cat(classes)
