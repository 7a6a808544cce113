"""Fewer operators for a GPU, where each one reads and writes all tokens, and so costs as much as a matrix product.

Both changes are exact up to rounding. A CPU gains nothing by them: OpenVINO adds biases where it multiplies.
"""

from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass
from onnxscript.rewriter import MatchResult, rewrite
from onnxscript.rewriter.ort_fusions.skip_normalization import fuse_skip_layer_normalization
from onnxscript.rewriter.pattern import RewriteRuleClassBase


def fuse(model: ir.Model) -> None:
    """Change `model` in place: attention adds no biases to keys and values, and each sum of the residual stream is one
    operator with the bias before it and the norm after it, which computes in float32.
    """
    rewrite(model, [BiasesAfterAttention.rule()])  # type: ignore[no-untyped-call]  # onnxscript gives it no types
    fuse_skip_layer_normalization(model)
    RemoveUnusedNodesPass()(model)


class BiasesAfterAttention(RewriteRuleClassBase):
    """What the biases of keys and values add, in the bias of the projection after attention.

    What all keys have in common adds the same number to each score of a query, and softmax takes it away. The rows of
    attention sum to 1, so the bias of the values passes through to the projection. The maps still read keys and values
    with their biases.
    """

    def __init__(self) -> None:
        super().__init__(remove_nodes=False)  # of these, others may read some

    def pattern(
        self, op: Any, query: Any, key: Any, of_keys: Any, value: Any, of_values: Any, weight: Any, bias: Any
    ) -> Any:
        mixed = op.MultiHeadAttention(
            query,
            op.Add(key, of_keys),
            op.Add(value, of_values),
            _domain="com.microsoft",
            _allow_other_attributes=True,
            _outputs=["mixed"],
        )
        return op.Add(op.MatMul(mixed, weight, _outputs=["product"]), bias)

    def check(self, op: Any, *args: Any, **values: Any) -> MatchResult:
        constants = [values[name].const_value for name in ("of_keys", "of_values", "weight", "bias")]
        result = MatchResult()
        if [each and len(each.shape) for each in constants] != [1, 1, 2, 1]:
            result.fail("these are not biases and a projection")
        return result

    def rewrite(self, op: Any, *args: Any, **values: Any) -> Any:
        passed, matrix, own = (values[name].const_value.numpy() for name in ("of_values", "weight", "bias"))
        moved = (own + passed.astype(np.float64) @ matrix.astype(np.float64)).astype(own.dtype)
        mixed, product = values["mixed"], values["product"]
        inputs = (values[name] for name in ("query", "key", "value"))
        again = op.MultiHeadAttention(*inputs, **mixed.producer().attributes, _domain="com.microsoft")
        projected = op.MatMul(again, values["weight"])
        projected.type, projected.shape = product.type, product.shape
        return op.Add(projected, op.initializer(ir.tensor(moved), name=f"{mixed.name}_bias"))
