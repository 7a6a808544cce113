"""The networks that learn: a pre-trained one whose head is replaced, or one that knows nothing yet."""

from dataclasses import replace
from typing import Literal

import torch

from model.config import ViTConfig
from model.fit.chance import Draw, seed_of
from model.positions import resize
from model.vit import VisionTransformer

Read = Literal["own", "cls", "cls_mean"]  # what the new head reads: ViTConfig.pool, "own" is that of the network


def with_new_head(
    model: VisionTransformer, *, classes: int, image_size: tuple[int, int], read: Read = "own"
) -> VisionTransformer:
    """A copy with a linear head of zeros in place of everything after the pool (paper, section 3.2).

    Positions are interpolated for another `image_size` (height, width). Where the network has no class token, or norms
    what it has pooled, its own way of pooling stays.
    """
    old = model.config
    config = replace(
        old,
        num_classes=classes,
        pool=old.pool if read == "own" or not old.class_token or old.final_norm == "after_pool" else read,
        representation_size=None,
        head="linear",
        head_bias=True,
        distillation_head=False,
    )
    new = VisionTransformer(config)
    state = model.state_dict()
    head = {f"head.{name}": torch.zeros_like(tensor) for name, tensor in new.head.state_dict().items()}
    new.load_state_dict({name: state[name] for name in new.state_dict() if name not in head} | head)
    return (new if config.image_size == image_size else resize(new, image_size)).eval()


def best_device() -> torch.device:
    """A GPU with CUDA if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def initialised(config: ViTConfig, seed: int) -> VisionTransformer:
    """A network whose first weights the seed decides."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed_of(seed, Draw.WEIGHTS, 0))
        return VisionTransformer(config)
