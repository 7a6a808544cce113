"""The check that the graphs compute what the model computes: PyTorch against ONNX Runtime, on the path that serves.

Both get the pixels of the service's preprocessing. PyTorch normalises them explicitly and runs model/vit.py; ONNX
Runtime runs the graphs through the service's engine, with everything folded and fused.
"""

import copy
import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from app.bundle import Precision, is_array
from app.inference.engine import DIRECTION, Asked, Engine, Outputs, Pixels
from export.image_spec import image_spec
from export.images import reference_pixels
from export.measured import Parity
from export.reference import reference
from model.checkpoints.checkpoint import Checkpoint

BATCHES = (1, 3, 8)
TOLERANCES = {  # of logits, parts of logits, embeddings, tokens and `unlike` relative to the largest, else absolute
    "logits": 1e-4,
    "embedding": 1e-4,
    "unlike": 1e-4,
    "attention": 1e-5,
    "rollout": 1e-5,
    "evidence": 1e-4,
    "distance": 1e-4,  # patches, and as much more as the largest is above 10
    "lens": 1e-4,
    "tokens": 1e-4,
    "receipt": 1e-3,
}
# Of LOOSE; in lower precision nothing else is bounded. Some tokens of DINOv2 have numbers far above all others (Darcet
# et al. 2023, arXiv 2309.16588), which int8 moves by half of the largest: all numbers of tokens count together there.
LOWER = {"int8": 0.5, "bf16": 0.2, "fp16": 0.05}
LOOSE = ("logits", "embedding", "evidence", "receipt", "tokens")
ROUNDINGS = 4.0  # times PyTorch's own error in float32
ROW_SUM_TOLERANCE = 1e-5
SEED = 17  # of directions


class ParityError(Exception):
    """The graphs do not compute what the model computes; the message says which numbers differ."""


def check_parity(
    checkpoint: Checkpoint, engine: Engine, precision: Precision, *, given: Pixels | None = None
) -> tuple[Parity, npt.NDArray[np.floating]]:
    """The largest differences found, and the attention distance of the explaining graph for each reference image,
    (images, L, H). Raises ParityError when a difference is over its tolerance.

    The images are reference images and those `given`, uint8 (n, height, width, 3), as one more batch. The first one is
    explained for the least likely classes too.

    In lower precision the tolerances only keep out nonsense: export/agreement.py measures how good the answers are.

    Where attention is so sharp that PyTorch's own float32 rounding is as large as the tolerance, a multiple of that
    rounding, measured against float64, replaces the tolerance.
    """
    pixels = reference_pixels(image_spec(checkpoint.preprocessing), sum(BATCHES))
    batches = np.split(pixels, np.cumsum(BATCHES)[:-1])
    if given is not None:
        batches.append(given)
    worst: dict[str, float] = {}
    distances = []
    for batch in batches:
        found, explained = compare(checkpoint, engine, precision, batch)
        distances.append(explained["distance"])
        worst = {name: max(worst.get(name, 0.0), difference) for name, difference in found.items()}
    places, features = engine.layout["explain"]["evidence"][0], checkpoint.config.embedding
    directions = np.random.default_rng(SEED).standard_normal((len(batches[0]), places, features), np.float32)
    explained_too = [[[DIRECTION] * places] * len(batches[0])]
    if checkpoint.config.num_classes:
        explained_too.append(_least_likely(engine, batches[0]))
    for classes in explained_too:
        asked = [Asked(*of_image) for of_image in zip(classes, directions, strict=True)]
        found, _ = compare(checkpoint, engine, precision, batches[0], asked=asked)
        worst = {name: max(worst.get(name, 0.0), difference) for name, difference in found.items()}
    parity = Parity(pictures=sum(map(len, batches)), **worst)
    return parity, np.concatenate(distances[: len(BATCHES)])


def compare(
    checkpoint: Checkpoint,
    engine: Engine,
    precision: Precision,
    batch: Pixels,
    *,
    asked: Sequence[Asked] = (),
) -> tuple[dict[str, float], Outputs]:
    """The largest difference of each quantity in both graphs, and the outputs of the explaining one for what is `asked`
    of each image, directions in all places, or the most likely classes. Raises ParityError as `check_parity` does.
    """
    allowed: dict[str, float] = dict(TOLERANCES)
    if precision != "fp32":
        allowed = dict.fromkeys(TOLERANCES, math.inf) | dict.fromkeys(LOOSE, LOWER[precision])
    explained = engine.run("explain", batch, asked)
    directions = np.stack([of_image.directions for of_image in asked]) if asked else None
    _check_sums(explained)
    if "logits" in explained:
        _check_classes(explained, [of_image.classes for of_image in asked])
    expected = reference(checkpoint, batch, explained.get("classes"), directions)
    allowed["distance"] *= max(1.0, float(expected["distance"].max()) / 10)
    with_tokens = engine.run("tokens", batch)
    of_tokens = _relative if precision == "fp32" else _in_all
    found = max_differences(expected, with_tokens | explained, directions, of_tokens=of_tokens)
    for answers in (engine.run("classify", batch), with_tokens):
        for name in engine.layout["classify"]:
            found[name] = largest_of(found[name], _relative(expected[name], answers[name]))
    if any(found[name] > allowed[name] for name in found):
        exact_model = copy.deepcopy(checkpoint.model).double()
        exact = reference(
            dataclasses.replace(checkpoint, model=exact_model), batch, explained.get("classes"), directions
        )
        rounded = {name: expected[name] for name in (*with_tokens, *explained)}
        rounding = max_differences(exact, rounded, directions, of_tokens=of_tokens)
        allowed = {name: max(allowed[name], ROUNDINGS * error) for name, error in rounding.items()}
    for name, difference in found.items():
        _check(f"{name}: PyTorch and ONNX Runtime differ", difference, allowed[name])
    return found, explained


def _relative(expected: npt.NDArray[np.floating], found: npt.NDArray[np.floating]) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def _in_all(expected: npt.NDArray[np.floating], found: npt.NDArray[np.floating]) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def max_differences(
    expected: Outputs,
    found: Outputs,
    directions: npt.NDArray[np.floating] | None = None,
    *,
    of_tokens: Callable[[npt.NDArray[np.floating], npt.NDArray[np.floating]], float] = _relative,
) -> dict[str, float]:
    """The largest difference of each quantity that the model has, that of tokens as `of_tokens` has it. `receipt` is
    what is left of a logit in `found`, or of an inner product with a direction (B, K, F), without its parts.
    """
    apart = {name: float(np.abs(found[name] - expected[name]).max()) for name in expected if name in found}
    differences: dict[str, float] = {
        name: apart[name] for name in ("attention", "rollout", "distance", "lens") if name in apart
    }
    differences |= {name: _relative(expected[name], found[name]) for name in ("embedding", "unlike") if name in apart}
    arrays = [of_tokens(expected[name], found[name]) for name in found if is_array(name)]
    if arrays:
        differences["tokens"] = largest_of(*arrays)
    if "logits" in expected:
        differences["logits"] = _relative(expected["logits"], found["logits"])
    whole = explained_whole(found, directions)
    largest = max(float(np.abs(numbers).max()) for numbers in (whole, expected["evidence_rest"]))
    if largest:  # else nothing was asked of a model without a head
        parts = (apart[name] for name in ("evidence", "evidence_heads", "evidence_rest"))
        differences["evidence"] = largest_of(*parts) / largest
        differences["receipt"] = float(np.abs(unexplained(found, directions)).max()) / largest
    return differences


def largest_of(*differences: float) -> float:
    """NaN if one of them is; Python's max would drop it."""
    return float(np.max(differences))


def unexplained(outputs: Outputs, directions: npt.NDArray[np.floating] | None = None) -> npt.NDArray[np.float64]:
    """What is explained less all its parts, (B, K)."""
    parts = outputs["evidence"].sum(axis=(2, 3), dtype=np.float64) + outputs["evidence_rest"].sum(axis=2)
    left: npt.NDArray[np.float64] = explained_whole(outputs, directions) - parts
    return left


def explained_whole(outputs: Outputs, directions: npt.NDArray[np.floating] | None) -> npt.NDArray[np.float64]:
    """The logits that are explained, or the inner products of the embedding with directions (B, K, F), (B, K)."""
    of_directions = np.zeros(outputs["evidence"].shape[:2])
    if directions is not None:
        of_directions = np.einsum("bf,bkf->bk", outputs["embedding"].astype(np.float64), directions)
    if "classes" not in outputs:
        return of_directions
    classes = outputs["classes"]
    logits = np.take_along_axis(outputs["logits"], classes.clip(min=0), axis=1)
    return np.where(classes == DIRECTION, of_directions, logits)


def _least_likely(engine: Engine, batch: Pixels) -> list[list[int]]:
    """The least likely classes of each image, as many as are explained."""
    explained = engine.run("explain", batch)
    found: list[list[int]] = np.argsort(explained["logits"])[:, : explained["classes"].shape[1]].tolist()
    return found


def _check_classes(explained: Outputs, given: Sequence[Sequence[int]]) -> None:
    if len(given) and (explained["classes"] != given).any():
        raise ParityError("the classes of the explaining graph are not those that were given")
    if len(given):
        return
    logits = np.take_along_axis(explained["logits"], explained["classes"], axis=1)
    if (np.sort(explained["logits"], axis=1)[:, : -logits.shape[1] - 1 : -1] != logits).any():
        raise ParityError("the classes of the explaining graph are not the most likely ones in order")


def _check_sums(explained: Outputs) -> None:
    for name in ("attention", "rollout"):
        error = float(np.abs(explained[name].sum(axis=-1, dtype=np.float64) - 1).max())
        _check(f"{name}: the sum of a row differs from 1", error, ROW_SUM_TOLERANCE)


def _check(what: str, difference: float, allowed: float) -> None:
    if not difference <= allowed:  # so that NaN fails too
        raise ParityError(f"{what} by {difference:.1e}, more than {allowed:.0e}")
