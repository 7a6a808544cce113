"""What OpenVINO 2026.4.1 computes wrongly on an AMD EPYC, and beside each the form of the graphs, which is right.

ONNX Runtime computes all of them right. Two more have no form here. A rotary embedding with one position reads that as
the position of every token (export/rewrite.py). Products in bfloat16 are reported wrong on Zen 5
(openvinotoolkit/openvino#38256): the known answer finds that at the start.

`python -m tests.support.openvino_faults` says what the installed version does on this machine.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from app.inference.openvino import opset13 as ops
from app.inference.openvino import ov

W = np.array([[1, 2], [3, 4]], np.float32)
RUNS = 30  # with streams, some models are right

Build = Callable[[Any], list[Any]]  # from the input to the outputs; the last one counts


class Form(NamedTuple):
    build: Build
    given: Any
    expected: Any
    streams: int = 1

    def wrong(self) -> int:
        """How many of RUNS models give other numbers, or cannot be opened."""
        return sum(not self._right() for _ in range(RUNS))

    def _right(self) -> bool:
        given = ops.parameter(self.given.shape, np.float32)
        settings = {"INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": self.streams}
        try:
            compiled = ov.Core().compile_model(ov.Model(self.build(given), [given]), "CPU", settings)
        except RuntimeError:
            return False
        return np.array_equal(compiled([self.given])[len(self.build(given)) - 1], self.expected)


def times(*factors: Any, turned: bool = False) -> Any:
    left, right = (factor if isinstance(factor, ov.Node) else ops.constant(factor) for factor in factors)
    return ops.matmul(left, right, False, turned)


def both_ways(given: Any) -> list[Any]:
    weights = ops.constant(W)
    return [times(given, weights), times(given, weights, turned=True)]


def both_ways_avoided(given: Any) -> list[Any]:
    weights, swap = ops.constant(W), ops.constant([1, 0])
    return [times(given, weights), ops.transpose(times(weights, ops.transpose(given, swap)), swap)]


def scaled_weight(given: Any) -> list[Any]:
    weights = ops.convert(ops.constant(W.astype(np.int8)), "f32")
    return [times(ops.multiply(weights, ops.constant(np.float32(0.5))), given)]


def scaled_other(given: Any) -> list[Any]:
    weights = ops.convert(ops.constant(W.astype(np.int8)), "f32")
    return [times(weights, ops.multiply(given, ops.constant(np.float32(0.5))))]


def of_vector(factor: Any, *, column: bool) -> Build:
    """A matrix times the vector (1, 3), times `factor`."""

    def build(given: Any) -> list[Any]:
        if column:
            product = ops.squeeze(times(given, np.array([[1], [3]], np.float32)), ops.constant([-1]))
        else:
            product = times(given, np.array([1, 3], np.float32))
        return [ops.multiply(product, ops.constant(factor))]

    return build


ROW, EYE, TEN = np.array([[1, 0]], np.float32), np.eye(2, dtype=np.float32), np.array([1, 10], np.float32)
FAULTS = {  # what OpenVINO computes wrongly, and what the graphs have in its place
    "a square matrix that is multiplied both ways": (
        Form(both_ways, ROW, ROW @ W.T),
        Form(both_ways_avoided, ROW, ROW @ W.T),
    ),
    "a weight of int8 with a scale, with streams": (
        Form(scaled_weight, EYE, W / 2, streams=2),
        Form(scaled_other, EYE, W / 2, streams=2),
    ),
    "a product with a vector, times a vector": (
        Form(of_vector(TEN, column=False), W, W @ [1, 3] * TEN),
        Form(of_vector(TEN, column=True), W, W @ [1, 3] * TEN),
    ),
    "a product of matrices with a vector, times a number": (
        Form(of_vector(np.float32(10), column=False), W[np.newaxis], W[np.newaxis] @ [1, 3] * 10),
        Form(of_vector(np.float32(10), column=True), W[np.newaxis], W[np.newaxis] @ [1, 3] * 10),
    ),
}

if __name__ == "__main__":
    print(f"OpenVINO {ov.__version__}: wrong of {RUNS} models, and wrong of {RUNS} in the form of the graphs")  # noqa: T201
    for name, (form, avoided) in FAULTS.items():
        print(f"  {form.wrong():>3} {avoided.wrong():>3}  {name}")  # noqa: T201
