"""Two toys that between them have every operator of the graphs, for a library that decides where each one runs."""

from typing import Any

from tests.support.switches import SWITCHES

TOYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "of many operators": SWITCHES["hybrid"]
    | SWITCHES["rotary positions of DINOv3, registers"]
    | SWITCHES["registers, LayerScale, norms of Q and K, SwiGLU, norm after the pool"]
    | {"norm": "rms", "representation_size": 9, "head": "cosine", "depth": 1},
}
OPERATORS = {  # in float32
    "Abs", "Add", "Cast", "Clip", "Concat", "Conv", "Div", "Equal", "Expand", "Flatten", "Gather", "GatherElements",
    "Gelu", "InstanceNormalization", "LayerNormalization", "Less", "MatMul", "MaxPool", "Mul", "MultiHeadAttention",
    "Pad", "Pow", "Reciprocal", "ReduceL2", "ReduceMean", "ReduceSum", "Relu", "Reshape", "RotaryEmbedding",
    "Shape", "Sigmoid", "Slice", "Softmax", "Split", "Sqrt", "Squeeze", "Sub", "Tanh", "TopK", "Transpose",
    "Unsqueeze", "Where",
}  # fmt: skip
