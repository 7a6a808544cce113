"""Learning the class of each image, by cross-entropy and with dropout."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.fit.batches import Batches
from model.fit.chance import Draw, seed_of
from model.fit.measure import Measured, measure, normalise
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
        with dropout(self.network, self.dropout_share, seed=seed_of(self.batches.seed, Draw.DROPOUT, step)):
            logits = self.network(images)
        return F.cross_entropy(logits, self.batches.classes(step, device))

    def measure(self) -> Measured | None:
        return None if self.held_out is None else measure(self.network, self.held_out, self.preprocessing)


@contextmanager
def dropout(network: VisionTransformer, share: float, *, seed: int) -> Iterator[None]:
    """Dropout where the paper has it, put in from outside: a network does the same in training and evaluation.

    While it lasts, `share` of the numbers are zero behind the positions and each dense layer but qkv (appendix B.1).

    In an MLP the first layer's are dropped behind the activation, as in vit_jax `models_vit.py`. The seed decides which
    numbers, and changes nothing of the random numbers that others draw.
    """

    def before(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Tensor, ...]:
        return (F.dropout(inputs[0], share), *inputs[1:])

    def after(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        return F.dropout(output, share)

    device = next(network.parameters()).device
    with torch.random.fork_rng([device] if device.type == "cuda" else []), ExitStack() as hooks:
        torch.manual_seed(seed)
        hooks.enter_context(network.norm_pre.register_forward_pre_hook(before))
        for name, module in network.blocks.named_modules():
            if name.endswith(("attn.proj", "mlp.fc2")):
                hooks.enter_context(module.register_forward_hook(after))
            if name.endswith("mlp.fc2"):
                hooks.enter_context(module.register_forward_pre_hook(before))
        yield
