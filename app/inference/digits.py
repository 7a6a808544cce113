"""How many digits of a number an answer in JSON has: as many as say something."""

from typing import Any

import numpy as np
import numpy.typing as npt

NINE = 9  # no two numbers of float32 share them


def digits(number: float) -> float:
    """The number with seven digits: logits are float32 and have no more, so further ones would say nothing."""
    return float(f"{number:.7g}")


def listed(values: npt.NDArray[np.float32]) -> list[Any]:
    """The numbers, in lists as deep as the array, with the nine digits that give the same float32 again. As float64,
    which lists have, they would mostly be written in seventeen.
    """
    exact = values.astype(np.float64)
    powers = np.floor(np.log10(np.abs(exact), where=exact != 0, out=np.zeros_like(exact)))
    scales = 10.0 ** (NINE - 1 - powers)
    numbers: list[Any] = (np.rint(exact * scales) / scales).tolist()
    return numbers
