"""Are the graphs the model? PyTorch's own numbers against ONNX Runtime's, on the path that serves.

Both get the pixels of the service's preprocessing. PyTorch then normalises them in so many words and runs
model/vit.py; ONNX Runtime runs the graphs through the service's engine, with everything folded and fused.
"""

import copy
import dataclasses
import math

import numpy as np
import numpy.typing as npt

from app.bundle import ImageSpec, Parity, Precision
from app.images.preprocess import preprocess
from app.inference.contract import Engine, Outputs
from export.pictures import reference_pictures
from export.reference import reference
from model.checkpoints.checkpoint import Checkpoint

BATCHES = (1, 3, 8)
TOLERANCES = {  # of logits and parts of logits relative to the largest, else absolute
    "logits": 1e-4,
    "attention": 1e-5,
    "rollout": 1e-5,
    "evidence": 1e-4,
    "distance": 1e-4,  # patches
    "lens": 1e-4,
    "receipt": 1e-3,
}
LOWER = {"int8": 0.5, "fp16": 0.05}  # of logits and their parts, which are all that is bounded in lower precision
ROUNDINGS = 4.0  # times PyTorch's own error in float32
ROW_SUM_TOLERANCE = 1e-5


class ParityError(Exception):
    """The graphs do not give the model's numbers; the message says where."""


def check_parity(checkpoint: Checkpoint, spec: ImageSpec, engine: Engine, precision: Precision) -> Parity:
    """The largest differences found. Raises ParityError when one is over its tolerance.

    In lower precision they are measured, and what is refused is nonsense: export/agreement.py says how good it is.

    Where attention is so sharp that PyTorch's own float32 rounding is of the tolerance's size, that rounding, measured
    against float64, takes its place.
    """
    pictures = list(reference_pictures(sum(BATCHES)))
    worst = dict.fromkeys(TOLERANCES, 0.0)
    start = 0
    for batch in BATCHES:
        pixels = np.stack([preprocess(p, spec.framing)[0] for p in pictures[start : start + batch]])
        start += batch
        explained = engine.run("explain", pixels)
        _check_sums(explained)
        _check_classes(explained)
        expected = reference(checkpoint, pixels, explained["classes"])
        found = max_differences(expected, explained)
        lean = np.abs(engine.run("classify", pixels)["logits"] - expected["logits"]).max()
        found["logits"] = max(found["logits"], float(lean / np.abs(expected["logits"]).max()))
        allowed = _tolerances(precision)
        if any(found[name] > allowed[name] for name in found):
            rounding = max_differences(_in_float64(checkpoint, pixels, explained["classes"]), expected)
            allowed = {name: max(limit, ROUNDINGS * rounding[name]) for name, limit in allowed.items()}
        for name, difference in found.items():
            _check(name, difference, allowed[name])
            worst[name] = max(worst[name], difference)
    return Parity(pictures=len(pictures), **worst)


def _tolerances(precision: Precision) -> dict[str, float]:
    if precision == "fp32":
        return dict(TOLERANCES)
    return dict.fromkeys(TOLERANCES, math.inf) | dict.fromkeys(("logits", "evidence", "receipt"), LOWER[precision])


def max_differences(expected: Outputs, found: Outputs) -> dict[str, float]:
    """By quantity, with `receipt` what the parts of a logit in `found` leave of it."""
    largest = max(float(np.abs(expected[name]).max()) for name in ("logits", "evidence_rest"))
    apart = {name: float(np.abs(found[name] - expected[name]).max()) for name in expected}
    return {
        "logits": apart["logits"] / float(np.abs(expected["logits"]).max()),
        "attention": apart["attention"],
        "rollout": apart["rollout"],
        "evidence": max(apart[name] for name in ("evidence", "evidence_heads", "evidence_rest")) / largest,
        "distance": apart["distance"],
        "lens": apart.get("lens", 0.0),
        "receipt": float(np.abs(unexplained(found)).max()) / largest,
    }


def unexplained(outputs: Outputs) -> npt.NDArray[np.float64]:
    """Logits less all their parts, (B, K)."""
    logits = np.take_along_axis(outputs["logits"], outputs["classes"], axis=1)
    parts = outputs["evidence"].sum(axis=(2, 3), dtype=np.float64) + outputs["evidence_rest"].sum(axis=2)
    difference: npt.NDArray[np.float64] = logits - parts
    return difference


def _in_float64(checkpoint: Checkpoint, pixels: npt.NDArray[np.uint8], classes: npt.NDArray[np.int64]) -> Outputs:
    return reference(dataclasses.replace(checkpoint, model=copy.deepcopy(checkpoint.model).double()), pixels, classes)


def _check_classes(explained: Outputs) -> None:
    logits = np.take_along_axis(explained["logits"], explained["classes"], axis=1)
    if (np.sort(explained["logits"], axis=1)[:, : -logits.shape[1] - 1 : -1] != logits).any():
        raise ParityError("the classes of the explaining graph are not the most likely ones, most likely first")


def _check_sums(explained: Outputs) -> None:
    for name in ("attention", "rollout"):
        off = float(np.abs(explained[name].sum(axis=-1, dtype=np.float64) - 1).max())
        _check(f"the sum of a row of {name}", off, ROW_SUM_TOLERANCE)


def _check(what: str, difference: float, allowed: float) -> None:
    if not difference <= allowed:  # so that NaN fails too
        raise ParityError(f"{what} differs by {difference:.1e} between PyTorch and ONNX Runtime, over {allowed:.0e}")
