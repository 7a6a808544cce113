"""Are the graphs the model? PyTorch's own numbers against ONNX Runtime's, on the path that serves.

Both get the pixels of the service's preprocessing. PyTorch then normalises them in so many words and runs
model/vit.py; ONNX Runtime runs the graphs through the service's engine, with everything folded and fused.
"""

import copy

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from app.bundle import ImageSpec, Parity
from app.engine import OnnxEngine, Outputs
from app.preprocess import preprocess
from export.pictures import reference_pictures
from model.checkpoints.checkpoint import Checkpoint
from model.preprocessing import Preprocessing
from model.vit import VisionTransformer

BATCHES = (1, 3, 8)
TOLERANCES = {"logits": 1e-4, "attention": 1e-5, "rollout": 1e-5}  # logits relative to the largest, else absolute
ROUNDINGS = 4.0  # times PyTorch's own error in float32
ROW_SUM_TOLERANCE = 1e-5


class ParityError(Exception):
    """The graphs do not give the model's numbers; the message says where."""


def check_parity(checkpoint: Checkpoint, spec: ImageSpec, engine: OnnxEngine) -> Parity:
    """The largest differences found. Raises ParityError when one is over its tolerance.

    Where attention is so sharp that PyTorch's own float32 rounding is of the tolerance's size, that rounding, measured
    against float64, takes its place.
    """
    pictures = list(reference_pictures(sum(BATCHES)))
    worst = dict.fromkeys(TOLERANCES, 0.0)
    start = 0
    for batch in BATCHES:
        pixels = np.stack([preprocess(p, spec)[0] for p in pictures[start : start + batch]])
        start += batch
        expected = reference(checkpoint.model, checkpoint.preprocessing, pixels)
        explained = engine.run("explain", pixels)
        _check_sums(explained)
        found = max_differences(expected, explained)
        lean = float(np.abs(engine.run("classify", pixels)["logits"] - expected["logits"]).max())
        found["logits"] = max(found["logits"], lean / float(np.abs(expected["logits"]).max()))
        allowed = dict(TOLERANCES)
        if any(found[name] > allowed[name] for name in found):
            rounding = max_differences(_in_float64(checkpoint, pixels), expected)
            allowed = {name: max(limit, ROUNDINGS * rounding[name]) for name, limit in allowed.items()}
        for name, difference in found.items():
            _check(name, difference, allowed[name])
            worst[name] = max(worst[name], difference)
    return Parity(pictures=len(pictures), **worst)


def max_differences(expected: Outputs, found: Outputs) -> dict[str, float]:
    """By quantity; the logits' relative to the largest of them."""
    differences = {name: float(np.abs(found[name] - expected[name]).max()) for name in TOLERANCES}
    differences["logits"] /= float(np.abs(expected["logits"]).max())
    return differences


@torch.inference_mode()
def reference(model: VisionTransformer, preprocessing: Preprocessing, pixels: npt.NDArray[np.uint8]) -> Outputs:
    """The plain model's numbers for uint8 pixels (B, height, width, 3), in the model's own precision."""
    dtype = model.head.weight.dtype
    mean, std = (torch.tensor(v, dtype=dtype) for v in (preprocessing.mean, preprocessing.std))
    images = ((torch.from_numpy(pixels).to(dtype) / 255 - mean) / std).permute(0, 3, 1, 2)
    matrices = model.attentions(images)  # (B, L, H, T, T)
    pool = _pool(model, images)  # (B, T)
    identity = torch.eye(matrices.shape[-1], dtype=dtype)
    product = identity.expand(len(pixels), -1, -1)
    for of_layer in matrices.mean(dim=2).unbind(1):
        product = (0.5 * of_layer + 0.5 * identity) @ product
    return {
        "logits": model(images).numpy(),
        "attention": torch.einsum("bt,blhts->blhs", pool, matrices).numpy(),
        "rollout": torch.einsum("bt,bts->bs", pool, product).numpy(),
    }


def _in_float64(checkpoint: Checkpoint, pixels: npt.NDArray[np.uint8]) -> Outputs:
    return reference(copy.deepcopy(checkpoint.model).double(), checkpoint.preprocessing, pixels)


def _pool(model: VisionTransformer, images: Tensor) -> Tensor:
    """How much the pooled vector takes from each token, (B, T): all of the class token where the head reads that."""
    config, tokens = model.config, model.encode(images)
    weights = torch.zeros(tokens.shape[:2], dtype=tokens.dtype)
    first = len(config.prefix)
    match config.pool:
        case "cls" | "cls_mean":
            weights[:, 0] = 1
        case "mean":
            weights[:, first:] = 1 / (weights.shape[1] - first)
        case "mean_all":
            weights[:] = 1 / weights.shape[1]
        case "map":
            assert model.attn_pool is not None
            weights[:, first:] = model.attn_pool.weights(tokens[:, first:]).mean(dim=(1, 2))
    return weights


def _check_sums(explained: Outputs) -> None:
    for name in ("attention", "rollout"):
        off = float(np.abs(explained[name].sum(axis=-1, dtype=np.float64) - 1).max())
        _check(f"the sum of a row of {name}", off, ROW_SUM_TOLERANCE)


def _check(what: str, difference: float, allowed: float) -> None:
    if not difference <= allowed:  # so that NaN fails too
        raise ParityError(f"{what} differs by {difference:.1e} between PyTorch and ONNX Runtime, over {allowed:.0e}")
