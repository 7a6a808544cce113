"""Learns new classes without changing the network: a linear head on its features, in closed form."""

from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from model.fit.fitted import Fitted
from model.fit.least_squares import LinearMap, least_squares
from model.fit.measure import CHUNK, measured, network_input
from model.fit.network import Read, best_device, with_new_head
from model.fit.samples import Samples, check_sizes, count_classes
from model.fit.temperature import temperature
from model.preprocessing import Preprocessing
from model.progress import track
from model.vit import VisionTransformer


@dataclass(frozen=True, kw_only=True)
class ProbeRecipe:
    read: Read = "cls_mean"  # class token and patch mean side by side; see with_new_head for networks without


def probe(model: VisionTransformer, preprocessing: Preprocessing, train: Samples, recipe: ProbeRecipe) -> Fitted:
    """The same network with a head by regularised least squares (paper, section 4.1, few-shot), and one temperature.

    Both are chosen by leaving each image out in turn with its near-copies, which is exact here. Images have the size
    that `preprocessing` gives. Raises ValueError for classes or sizes that do not fit.
    """
    classes = count_classes(train)
    check_sizes(preprocessing, train)
    network = with_new_head(model, classes=classes, image_size=preprocessing.size, read=recipe.read)
    network.to(best_device())
    read = features(network, train, preprocessing) if train.features is None else train.features
    head, hardness = fit_head(network, read, train.classes, train.groups)
    chosen = {
        "pool": network.config.pool,
        "weights": "each label alike",
        "strength": head.strength,
        "temperature": hardness,
    }
    return Fitted(
        model=network.cpu(),
        history=(),
        left_out=head.left_out / hardness,
        features=read,
        figures={"left_out_accuracy": measured(head.left_out, train.classes).accuracy},
        recipe={"method": "probe", **asdict(recipe), **chosen},
    )


def read_by_probe(model: VisionTransformer, preprocessing: Preprocessing, pixels: Tensor, read: Read) -> Tensor:
    """What the head of a probe of this network reads of pixels uint8 (N, height, width, 3): float32 (N, F)."""
    network = with_new_head(model, classes=2, image_size=preprocessing.size, read=read).to(best_device())
    samples = Samples(pixels=pixels, classes=torch.zeros(len(pixels), dtype=torch.int64))
    return features(network, samples, preprocessing)


@torch.inference_mode()
def features(network: VisionTransformer, samples: Samples, preprocessing: Preprocessing) -> Tensor:
    """The vectors that the head reads, float32 (N, F) on the CPU."""
    device = next(network.parameters()).device
    chunks = track(samples.pixels.split(CHUNK), "reading features")
    return torch.cat(
        [network.read(network.encode(network_input(pixels, preprocessing, device))).cpu() for pixels in chunks]
    )


def fit_head(
    network: VisionTransformer, features: Tensor, classes: Tensor, groups: Tensor | None
) -> tuple[LinearMap, float]:
    """Put the head that features (N, F) and classes (N,) teach into the network, divided by the temperature.

    Returns the head before that, and the temperature.
    """
    assert isinstance(network.head, nn.Linear)
    head = least_squares(features, classes, count=network.config.num_classes, groups=groups)
    hardness = probe_temperature(head.left_out, classes)
    with torch.no_grad():
        network.head.weight.copy_(head.weight / hardness)
        network.head.bias.copy_(head.bias / hardness)
    return head, hardness


def probe_temperature(left_out: Tensor, classes: Tensor) -> float:
    """The temperature of left-out logits (N, C). Targets are smoothed as Platt did: none is 1, even if all are right.

    Platt 1999, "Probabilistic outputs for support vector machines", section 2.2: (N + 1) / (N + 2). It is 1 where the
    right classes have no larger logits than others, as with one image of each class.
    """
    if not left_out.gather(1, classes[:, None]).mean() > left_out.mean():
        return 1.0
    return temperature(left_out, classes, smoothing=1 / (len(classes) + 2))
