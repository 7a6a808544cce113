"""Vectors of length 1, by which embeddings are compared."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Float = TypeVar("Float", np.float32, np.float64)


def unit(vectors: npt.NDArray[Float]) -> npt.NDArray[Float]:
    """(..., features), each divided by its Euclidean norm, in their own precision. A vector of zeros stays as it is."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    units: npt.NDArray[Float] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return units
