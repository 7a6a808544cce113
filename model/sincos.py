"""Fixed positions."""

import torch
from torch import Tensor

TEMPERATURE = 10_000.0


def sincos2d(grid: tuple[int, int], width: int) -> Tensor:
    """Positions (1, rows * columns, D): sin x, cos x, sin y, cos y, a quarter of the width each.

    big_vision `models/vit.py` posemb_sincos_2d (arXiv 2205.01580), vit-pytorch `simple_vit.py`. MoCo v3 and MAE use
    other frequencies; their files hold the table, which is loaded as learned positions.
    """
    rows, columns = grid
    frequencies = TEMPERATURE ** -(torch.arange(width // 4) / (width // 4 - 1))
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))  # (N, 2)
    y, x = (place[:, None] * frequencies for place in places.unbind(1))  # each (N, D/4)
    return torch.cat([x.sin(), x.cos(), y.sin(), y.cos()], dim=1).unsqueeze(0)
