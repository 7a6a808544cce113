"""Learns a network from nothing without labels: the colours of patches that it cannot see (paper, appendix B.1.2)."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import ViTConfig
from model.fit.augment import FROM_NOTHING, Augmentation
from model.fit.batches import Batches
from model.fit.chance import Draw, generator
from model.fit.fitted import Fitted
from model.fit.loop import Course, learn
from model.fit.measure import CHUNK, Measured, normalise
from model.fit.network import best_device, initialised
from model.fit.optimiser import cosine, optimiser
from model.fit.samples import Samples, check_sizes
from model.fit.snapshot import Snapshot, identity
from model.preprocessing import Preprocessing
from model.vit import VisionTransformer

CORRUPTED = 0.5  # of all patch embeddings
MASKED, REPLACED = 0.8, 0.1  # of those: by the mask token, or by another patch's embedding; the rest stay
LEVELS = 8  # 3 bits for each channel
COLOURS = LEVELS**3


@dataclass(frozen=True, kw_only=True)
class MaskedRecipe:
    """Everything that the weights depend on, beside the network and the images."""

    seed: int = 0
    rate: float = 1e-3  # 2e-4 in the paper, for batches of 4,096 and a million steps
    epochs: float = 100.0
    batch: int = 128
    warm_up_share: float = 0.1  # of the steps
    weight_decay: float = 0.1
    clip: float = 1.0
    augmentation: Augmentation = replace(FROM_NOTHING, flip=True)  # noqa: RUF009 (it is frozen)


def masked(
    config: ViTConfig,
    preprocessing: Preprocessing,
    train: Samples,
    held_out: Samples | None,
    recipe: MaskedRecipe,
    *,
    work: Path | None = None,
) -> Fitted:
    """A network of `config` without a head; the classes of the samples are not read.

    Its figures say how often the colour of a corrupted patch of a held-out image is right. Sizes, `held_out`, `work`
    and errors are those of `pretrain`.
    """
    check_sizes(preprocessing, held_out)
    network = initialised(replace(config, num_classes=0, representation_size=None), recipe.seed)
    known = identity("masked", asdict(recipe), network, preprocessing, train, held_out)
    snapshot = Snapshot(work, "masked", identity=known)
    colours = ColourHead(config.width).to(best_device())
    network.to(best_device())
    crops, size = recipe.augmentation, preprocessing.size
    batches = Batches(samples=train, size=size, batch=recipe.batch, seed=recipe.seed, augmentation=crops)
    course = Course.over(recipe.epochs, batches, cosine, warm_up_share=recipe.warm_up_share, clip=recipe.clip)
    objective = MaskedPatches(network, colours, preprocessing, batches, held_out)
    adam = optimiser(network, rate=recipe.rate, weight_decay=recipe.weight_decay, beside=[colours])
    history = learn(objective, course, [adam], beside=[colours], snapshot=snapshot)
    seen = objective.measure()
    return Fitted(
        model=network.cpu(),
        history=history,
        figures={} if seen is None else {"colour_accuracy": seen.accuracy, "loss": seen.loss},
        recipe={"method": "masked", **asdict(recipe)},
    )


class ColourHead(nn.Module):
    """The embedding that stands for a hidden patch, and the layer that reads colours from tokens of width D."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mask = nn.Parameter(torch.zeros(width))
        self.linear = nn.Linear(width, COLOURS)
        nn.init.zeros_(self.linear.weight)  # every colour is equally likely at first
        nn.init.zeros_(self.linear.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.linear(tokens)


@dataclass(frozen=True, kw_only=True)
class Corruption:
    """The fate of each patch embedding of a batch."""

    corrupted: Tensor  # bool (B, N): their colours are to be predicted
    hidden: Tensor  # bool (B, N): those of them that become the mask
    source: Tensor  # int64 (B * N,): which patch of the batch each is taken from; most are their own

    @classmethod
    def draw(cls, images: int, patches: int, generator: torch.Generator, device: torch.device) -> "Corruption":
        chosen, fate = torch.rand(2, images, patches, generator=generator)
        corrupted = chosen < CORRUPTED
        replaced = (corrupted & (fate >= MASKED) & (fate < MASKED + REPLACED)).flatten()
        own, count = torch.arange(images * patches), images * patches
        other = (own + torch.randint(1, max(2, count), (count,), generator=generator)) % count
        return cls(
            corrupted=corrupted.to(device),
            hidden=(corrupted & (fate < MASKED)).to(device),
            source=torch.where(replaced, other, own).to(device),
        )

    def apply(self, patches: Tensor, mask: Tensor) -> Tensor:
        """Embeddings (B, N, D) with some replaced, and some of them by the mask (D,)."""
        taken = patches.flatten(0, 1)[self.source].view_as(patches)
        return torch.where(self.hidden.unsqueeze(-1), mask.to(patches.dtype), taken)


@dataclass(frozen=True)
class MaskedPatches:
    """An objective of the loop. What is corrupted depends on the seed of the batches and the step alone."""

    network: VisionTransformer
    colours: ColourHead
    preprocessing: Preprocessing
    batches: Batches
    held_out: Samples | None

    def loss(self, step: int) -> Tensor:
        pixels = self.batches.pixels(step, self.colours.mask.device)
        logits, targets = self._predict(pixels, generator(self.batches.seed, Draw.CORRUPTION, step))
        return F.cross_entropy(logits, targets)

    @torch.no_grad()
    def measure(self) -> Measured | None:
        """Loss and accuracy of the corrupted patches, which are the same each time."""
        if self.held_out is None:
            return None
        loss = right = count = 0.0
        for number, pixels in enumerate(self.held_out.pixels.split(CHUNK)):
            chance = generator(self.batches.seed, Draw.MEASUREMENT, number)
            shown = pixels.to(self.colours.mask.device).permute(0, 3, 1, 2).float()
            logits, targets = self._predict(shown, chance)
            loss += F.cross_entropy(logits.double(), targets, reduction="sum").item()
            right, count = right + (logits.argmax(1) == targets).sum().item(), count + len(targets)
        return Measured(loss=loss / count, accuracy=right / count)

    def _predict(self, pixels: Tensor, chance: torch.Generator) -> tuple[Tensor, Tensor]:
        """Logits (K, COLOURS) and colours (K,) of the corrupted patches of pixels (B, 3, height, width), 0 to 255."""
        network, config = self.network, self.network.config
        colours = mean_colours(pixels, config.patch_size)
        images, patches_each = colours.shape
        corruption = Corruption.draw(images, patches_each, chance, pixels.device)

        def corrupt(module: nn.Module, inputs: tuple[Any, ...], patches: Tensor) -> Tensor:
            return corruption.apply(patches, self.colours.mask)

        with network.patch_embed.register_forward_hook(corrupt):
            tokens = network.encode(normalise(pixels, self.preprocessing))
        patches = tokens[:, len(config.prefix) :, -config.width :]
        return self.colours(patches[corruption.corrupted]), colours[corruption.corrupted]


def mean_colours(pixels: Tensor, patch_size: int) -> Tensor:
    """The mean colour of each patch in 3 bits per channel, int64 (B, N), for pixels (B, 3, height, width), 0 to 255."""
    levels = (F.avg_pool2d(pixels, patch_size) * (LEVELS / 256)).long().clamp(0, LEVELS - 1)
    red, green, blue = levels.flatten(2).unbind(1)
    return (red * LEVELS + green) * LEVELS + blue
