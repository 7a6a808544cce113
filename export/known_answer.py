"""The known answer of a bundle: what PyTorch computes for one small image, and how far a replica may be from it."""

import numpy as np
import torch

from app.bundle import KnownAnswer, Precision, Tolerance
from app.inference.engine import Engine, Outputs, Pixels
from app.inference.known_answer import KnownImage, sums
from export.graphs import MOST_LIKELY
from export.parity import ROUNDINGS, TOLERANCES, ParityError, in_float64, largest_of
from export.reference import normalised, reference
from model.checkpoints.checkpoint import Checkpoint
from model.shapes import draw

SEED = 23
SIZE = (32, 32)
DIGITS = 7  # as many as float32 has
SHARES = {"fp16": 0.05, "bf16": 0.1, "int8": 0.1}  # of the largest logit, of 1, and of the grid's longer side


def known_answer(checkpoint: Checkpoint, engine: Engine, precision: Precision) -> KnownAnswer:
    """PyTorch's answer in float32. The tolerance is the limit of the precision, or ROUNDINGS times what `engine`, which
    runs the new graphs on this machine, differs by where that is more: another machine rounds differently.

    Raises ParityError when fp32 graphs differ by more than PyTorch's own rounding explains.
    """
    limits = _limits(checkpoint, precision)
    pixels = draw(np.random.default_rng(SEED), size=SIZE).pixels
    answer = KnownAnswer(
        size=SIZE, pixels=pixels.tobytes(), logits=(), classes=(), sums={}, tolerance=Tolerance(**limits)
    )
    size = checkpoint.preprocessing.size
    image = KnownImage(answer, size).images(1)
    expected = _reference(checkpoint, image)
    answer = answer.model_copy(update=_numbers(expected))
    measured = _worst(answer, size, engine)
    if precision == "fp32" and not all(measured[name] <= limits[name] for name in measured):
        exact_numbers = _numbers(reference(in_float64(checkpoint), image, expected.get("classes")))
        exact = answer.model_copy(update=exact_numbers)
        rounding = KnownImage(exact, size).differences(expected)
        for name, difference in measured.items():
            allowed = max(limits[name], ROUNDINGS * float(rounding[name].max()))
            if not difference <= allowed:
                raise ParityError(f"{name} of the known image: PyTorch and ONNX Runtime differ by {difference:.1e}")
    tolerance = {name: max(limit, ROUNDINGS * measured.get(name, 0.0)) for name, limit in limits.items()}
    return answer.model_copy(update={"tolerance": Tolerance(**{name: _short(t) for name, t in tolerance.items()})})


def _limits(checkpoint: Checkpoint, precision: Precision) -> dict[str, float]:
    """The difference that every machine may have. fp16 leaves room for GPUs: CPUs compute fp16 graphs in float32."""
    if precision == "fp32":
        return {name: TOLERANCES[name] for name in Tolerance.model_fields}
    share = SHARES[precision]
    return dict.fromkeys(Tolerance.model_fields, share) | {"distance": share * max(checkpoint.config.grid)}


def _reference(checkpoint: Checkpoint, image: Pixels) -> Outputs:
    """The outputs of the explaining graph for its most likely classes, if it has any."""
    if not checkpoint.config.num_classes:
        return reference(checkpoint, image, None)
    with torch.no_grad():
        logits = checkpoint.model(normalised(image, checkpoint)).numpy()
    classes = np.argsort(-logits, axis=1, kind="stable")[:, :MOST_LIKELY]
    return reference(checkpoint, image, classes)


def _numbers(expected: Outputs) -> dict[str, object]:
    return {
        "logits": tuple(_short(x) for x in expected["logits"][0]) if "logits" in expected else (),
        "classes": tuple(int(index) for index in expected["classes"][0]) if "classes" in expected else (),
        "sums": {name: tuple(_short(x) for x in of_all.ravel()) for name, of_all in sums(expected).items()},
    }


def _worst(answer: KnownAnswer, size: tuple[int, int], engine: Engine) -> dict[str, float]:
    """The largest difference of each quantity in both graphs, for one image and for several."""
    known = KnownImage(answer, size)
    worst: dict[str, float] = {}
    for images in (known.images(1), known.images(3)):
        explained = known.differences(engine.run("explain", images))
        lean = known.differences(engine.run("classify", images))
        for name, of_rows in (*explained.items(), *lean.items()):
            worst[name] = largest_of(worst.get(name, 0.0), float(of_rows.max()))
    return worst


def _short(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
