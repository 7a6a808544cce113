"""The known answer of a bundle: what PyTorch computes for one small image, and how far a replica may be from it."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from app.bundle import KnownAnswer, Precision, Tolerance
from app.inference.digits import digits
from app.inference.engine import DIRECTION, Engine, Outputs, Pixels
from app.inference.known_answer import KnownImage, enlarged, known_directions, sums
from export.graphs import MOST_LIKELY
from export.parity import ROUNDINGS, TOLERANCES, ParityError, compare, largest_of
from export.reference import normalised, reference
from model.checkpoints.checkpoint import Checkpoint
from model.shapes import draw

SEED = 23
SIZE = (32, 32)
SHARES = {"fp16": 0.05, "bf16": 0.1, "int8": 0.1}  # of the largest logit, of 1, and of the grid's longer side


def known_answer(checkpoint: Checkpoint, engine: Engine, precision: Precision) -> KnownAnswer:
    """PyTorch's answer in float32. The tolerance is the limit of the precision, or ROUNDINGS times what `engine`, which
    runs the new graphs on this machine, differs by where that is more: another machine rounds differently.

    Raises ParityError as `check_parity` does, if the graphs are fp32.
    """
    limits, size = _limits(checkpoint, precision), checkpoint.preprocessing.size
    pixels = draw(np.random.default_rng(SEED), size=SIZE).pixels
    image = enlarged(pixels, size)[np.newaxis]
    if precision == "fp32":
        try:
            compare(checkpoint, engine, precision, image)
        except ParityError as error:
            raise ParityError(f"the known image: {error}") from None
    given = {name for outputs in engine.layout.values() for name in outputs}
    classes, outputs = _reference(checkpoint, image)
    expected = {name: array for name, array in outputs.items() if name in given}
    answer = KnownAnswer(
        size=SIZE, pixels=pixels.tobytes(), classes=tuple(classes), **_numbers(expected), tolerance=Tolerance(**limits)
    )
    measured = _worst(answer, size, engine)
    tolerance = {name: max(limit, ROUNDINGS * measured.get(name, 0.0)) for name, limit in limits.items()}
    return answer.model_copy(update={"tolerance": Tolerance(**{name: digits(t) for name, t in tolerance.items()})})


def _limits(checkpoint: Checkpoint, precision: Precision) -> dict[str, float]:
    """The difference that every machine may have. fp16 leaves room for GPUs: CPUs compute fp16 graphs in float32."""
    if precision == "fp32":
        return {name: TOLERANCES[name] for name in Tolerance.model_fields}
    share = SHARES[precision]
    return dict.fromkeys(Tolerance.model_fields, share) | {"distance": share * max(checkpoint.config.grid)}


def _reference(checkpoint: Checkpoint, image: Pixels) -> tuple[list[int], Outputs]:
    """What is explained, the most likely classes and in the last place a direction, and the outputs of the graphs. One
    class alone has that place.
    """
    if not checkpoint.config.num_classes:
        return [DIRECTION], reference(checkpoint, image, None, _directions(checkpoint, [DIRECTION]))
    with torch.no_grad():
        logits = checkpoint.model(normalised(image, checkpoint)).numpy()
    classes = np.argsort(-logits, axis=1, kind="stable")[:, :MOST_LIKELY]
    if classes.shape[1] > 1:
        classes[0, -1] = DIRECTION
    asked = classes[0].tolist()
    return asked, reference(checkpoint, image, classes, _directions(checkpoint, asked))


def _directions(checkpoint: Checkpoint, classes: list[int]) -> npt.NDArray[np.float32]:
    return known_directions(classes, features=checkpoint.config.embedding)[np.newaxis]


def _numbers(expected: Outputs) -> dict[str, Any]:
    return {
        "logits": tuple(digits(x) for x in expected["logits"][0]) if "logits" in expected else (),
        "sums": {name: tuple(digits(x) for x in of_all.ravel()) for name, of_all in sums(expected).items()},
    }


def _worst(answer: KnownAnswer, size: tuple[int, int], engine: Engine) -> dict[str, float]:
    """The largest difference of each quantity in all graphs, for one image and for several."""
    known = KnownImage(answer, size)
    worst: dict[str, float] = {}
    for inputs in (known.inputs(1), known.inputs(3)):
        for graph in engine.layout:
            for name, of_rows in known.differences(engine.run(graph, *inputs)).items():
                worst[name] = largest_of(worst.get(name, 0.0), float(of_rows.max()))
    return worst
