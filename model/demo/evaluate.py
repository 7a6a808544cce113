"""How good the demo model is on held-out images: its labels, and whether its attention is on the shape."""

import torch
from torch import Tensor

from model.demo.train import PREPROCESSING
from model.fit.measure import normalise
from model.progress import track
from model.shapes import held_out
from model.vit import VisionTransformer

CHUNK = 250


@torch.inference_mode()
def evaluate(model: VisionTransformer, *, count: int = 2000) -> dict[str, float]:
    """Shares of `count` held-out images: top-1 accuracy, and how often the hottest patch is on the shape.

    A patch is on the shape if the mask covers its centre or at least half of it.
    """
    names = ("top1_accuracy", "rollout_on_object", "last_layer_on_object", "chance_on_object")
    totals = dict.fromkeys(names, 0.0)
    samples = list(track(held_out(count), "drawing", of=count))
    for start in track(range(0, count, CHUNK), "evaluating"):
        chunk = samples[start : start + CHUNK]
        pixels = torch.stack([torch.from_numpy(s.pixels.copy()) for s in chunk]).permute(0, 3, 1, 2)
        labels = torch.tensor([s.label for s in chunk])
        masks = torch.stack([torch.from_numpy(s.mask.copy()) for s in chunk])
        images = normalise(pixels, PREPROCESSING)
        matrices = model.attentions(images).mean(dim=2)  # (B, L, T, T), heads averaged
        on_object = patches_on_object(masks, model.config.patch_size)
        totals["top1_accuracy"] += (model(images).argmax(1) == labels).sum().item()
        for name, row in (("rollout_on_object", _rollout(matrices)), ("last_layer_on_object", matrices[:, -1, 0])):
            hottest = row[:, len(model.config.prefix) :].argmax(dim=1, keepdim=True)
            totals[name] += on_object.gather(1, hottest).sum().item()
        totals["chance_on_object"] += on_object.float().mean(dim=1).sum().item()
    return {"pictures": float(count), **{name: round(total / count, 4) for name, total in totals.items()}}


def patches_on_object(masks: Tensor, patch_size: int) -> Tensor:
    """Bool (B, patches) for masks uint8 (B, height, width)."""
    cells = (masks > 127).unfold(1, patch_size, patch_size).unfold(2, patch_size, patch_size)
    covered = cells.float().mean(dim=(-2, -1)) >= 0.5
    center = cells[..., patch_size // 2, patch_size // 2]
    return (covered | center).flatten(1)


def _rollout(matrices: Tensor) -> Tensor:
    """The class token's row (B, T) of attention rollout over (B, L, T, T)."""
    identity = torch.eye(matrices.shape[-1])
    product = identity.expand(len(matrices), -1, -1)
    for of_layer in matrices.unbind(1):
        product = (0.5 * of_layer + 0.5 * identity) @ product
    return product[:, 0]
