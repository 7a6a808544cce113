"""Dropout where the paper has it, put into a network from outside: a network that serves has none.

So the network does the same in PyTorch's modes of training and of evaluation.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.vit import VisionTransformer


@contextmanager
def dropout(network: VisionTransformer, share: float, *, seed: int) -> Iterator[None]:
    """While it lasts, `share` of the numbers are zero behind the positions and each dense layer but qkv (appendix B.1).

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
