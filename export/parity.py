"""Are the graphs the model? PyTorch's own numbers against ONNX Runtime's, on the path that serves.

Both get the pixels of the service's preprocessing. PyTorch then normalises them in so many words and runs
model/vit.py; ONNX Runtime runs the graphs through the service's engine, with everything folded and fused.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from app.bundle import ImageSpec, Parity
from app.engine import OnnxEngine, Outputs
from app.preprocess import preprocess
from export.pictures import reference_pictures
from model.checkpoints.checkpoint import Checkpoint

BATCHES = (1, 3, 8)
LOGITS_TOLERANCE = 1e-4  # relative to the largest logit
ATTENTION_TOLERANCE = 1e-5
ROW_SUM_TOLERANCE = 1e-5

Array = npt.NDArray[np.floating]


class ParityError(Exception):
    """The graphs do not give the model's numbers; the message says where."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """PyTorch's numbers for a batch."""

    logits: Array  # (B, classes)
    attention: Array  # (B, L, H, T)
    rollout: Array  # (B, T)


def check_parity(checkpoint: Checkpoint, spec: ImageSpec, engine: OnnxEngine) -> Parity:
    """The largest differences found. Raises ParityError when one is over its tolerance."""
    pictures = list(reference_pictures(sum(BATCHES)))
    worst = dict.fromkeys(("logits", "attention", "rollout"), 0.0)
    start = 0
    for batch in BATCHES:
        pixels = np.stack([preprocess(p, spec)[0] for p in pictures[start : start + batch]])
        start += batch
        expected = reference(checkpoint, pixels)
        explained = engine.run("explain", pixels)
        _check_sums(explained)
        scale = float(np.abs(expected.logits).max())
        for name, found in _differences(expected, explained, engine.run("classify", pixels)).items():
            worst[name] = max(worst[name], found / scale if name == "logits" else found)
    _check_tolerance("logits", worst["logits"], LOGITS_TOLERANCE)
    _check_tolerance("attention", worst["attention"], ATTENTION_TOLERANCE)
    _check_tolerance("rollout", worst["rollout"], ATTENTION_TOLERANCE)
    return Parity(pictures=len(pictures), **worst)


@torch.inference_mode()
def reference(checkpoint: Checkpoint, pixels: npt.NDArray[np.uint8]) -> Reference:
    """The plain model's numbers for uint8 pixels (B, height, width, 3)."""
    mean, std = (torch.tensor(v) for v in (checkpoint.preprocessing.mean, checkpoint.preprocessing.std))
    images = ((torch.from_numpy(pixels).float() / 255 - mean) / std).permute(0, 3, 1, 2)
    matrices = checkpoint.model.attentions(images)  # (B, L, H, T, T)
    config = checkpoint.model.config

    def pooled(rows: Tensor) -> Tensor:
        """The pooled query's row of (..., T, T)."""
        return rows[..., 0, :] if config.pool == "cls" else rows[..., len(config.prefix) :, :].mean(dim=-2)

    identity = torch.eye(matrices.shape[-1])
    product = identity.expand(len(pixels), -1, -1)
    for of_layer in matrices.mean(dim=2).unbind(1):
        product = (0.5 * of_layer + 0.5 * identity) @ product
    return Reference(
        logits=checkpoint.model(images).numpy(), attention=pooled(matrices).numpy(), rollout=pooled(product).numpy()
    )


def _differences(expected: Reference, explained: Outputs, classified: Outputs) -> dict[str, float]:
    def largest(ours: npt.NDArray[Any], theirs: Array) -> float:
        return float(np.abs(ours - theirs).max())

    return {
        "logits": max(largest(o["logits"], expected.logits) for o in (explained, classified)),
        "attention": largest(explained["attention"], expected.attention),
        "rollout": largest(explained["rollout"], expected.rollout),
    }


def _check_sums(explained: Outputs) -> None:
    for name in ("attention", "rollout"):
        off = float(np.abs(explained[name].sum(axis=-1, dtype=np.float64) - 1).max())
        _check_tolerance(f"the sum of a row of {name}", off, ROW_SUM_TOLERANCE)


def _check_tolerance(what: str, difference: float, tolerance: float) -> None:
    if not difference <= tolerance:  # so that NaN fails too
        raise ParityError(f"{what} differs by {difference:.1e} between PyTorch and ONNX Runtime, over {tolerance:.0e}")
