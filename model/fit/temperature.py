"""The temperature that makes scores probabilities (Guo et al. 2017, arXiv 1706.04599)."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def temperature(logits: Tensor, classes: Tensor, *, smoothing: float = 0.0) -> float:
    """The T > 0 for which softmax(logits / T) makes the classes (N,) most likely; logits are (N, C).

    `smoothing` is the share of each target that is spread over all classes. With none, there is no best temperature if
    every class is right; the caller sees to it. With some there always is one if the right classes have larger logits
    than others in the mean.
    """
    unit = logits.double().std()  # so that the search does not depend on the size of the logits
    z = logits.double() / unit
    log = torch.zeros((), dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS(
        [log], max_iter=200, tolerance_grad=1e-10, tolerance_change=0, line_search_fn="strong_wolfe"
    )

    def loss() -> Any:
        search.zero_grad()
        likelihood = F.cross_entropy(z / log.exp(), classes, label_smoothing=smoothing)
        likelihood.backward()
        return likelihood

    search.step(loss)
    return float(log.exp().item() * unit)
