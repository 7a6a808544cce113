"""Near-copies among images: frames of a burst, files that were saved again, changed copies of one original.

An image that is left out of learning while its near-copy stays in is not left out, so what is left out, held out or
folded are groups. N images, F features.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

LIKE = 0.95  # cosine from which two images are near-copies; at 0.92 a fifth of a set of textiles would be, and none is
MOST = 1024  # images in a group by likeness: the time of leaving one out grows with the cube
NEAREST = 16  # links of an image that are looked at, where images have more in the mean
BLOCK = 1024  # images that are compared with all others of their label at a time


def near_copies(features: Tensor, classes: Tensor, files: Sequence[Path] = ()) -> Tensor:
    """The group of each image, int64 (N,), numbered from 0: images of one group are near-copies of each other.

    They have one class, and are near-copies by the names of their files, if there are any, or by likeness: the cosine
    of their standardised features (N, F), less the means of their classes (N,). Without the means, all images of a
    label are alike to a network that knows it well. Likeness is not transitive, and a chain of it would join all
    images. So the links are taken in their order, the closest first, and two groups stay apart if together they were
    more than half of the images of their class, or more than MOST.
    """
    groups = _Groups(len(features))
    first: dict[tuple[int, Path], int] = {}
    for row, (kind, file) in enumerate(zip(classes.tolist(), files, strict=False)):
        groups.join(row, first.setdefault((kind, original(file)), row))
    z = features - features.mean(dim=0)
    spread = z.square().mean(dim=0).sqrt()
    z /= torch.where(spread > 1e-6 * spread.max(), spread, torch.inf)
    for kind in classes.unique() if spread.any() else ():
        rows = (classes == kind).nonzero().flatten()
        z[rows] -= z[rows].mean(dim=0)
        for one, other in _links(F.normalize(z[rows])):
            groups.join(int(rows[one]), int(rows[other]), most=min(MOST, (len(rows) + 1) // 2))
    ids = torch.tensor([groups.of(row) for row in range(len(features))], dtype=torch.int64)
    return ids.unique(return_inverse=True)[1]


def original(file: Path) -> Path:
    """The file of which this one is a changed copy by its name, or itself. Roboflow calls them NAME_jpg.rf.HASH.jpg."""
    return file.with_name(file.name.partition(".rf.")[0])


def _links(units: Tensor) -> list[tuple[int, int]]:
    """The pairs of rows (n, F) of length 1 that are alike, the closest first."""
    cosines, ones, others = [], [], []
    for start in range(0, len(units), BLOCK):
        block = units[start : start + BLOCK] @ units.T
        block[torch.arange(len(block)), torch.arange(start, start + len(block))] = -1
        if (block > LIKE).sum() > NEAREST * len(block):
            closest = block.topk(min(NEAREST, len(units)), dim=1)
            block = torch.full_like(block, -1).scatter(1, closest.indices, closest.values)
        row, column = (block > LIKE).nonzero().T
        cosines.append(block[row, column])
        ones.append(row + start)
        others.append(column)
    order = torch.cat(cosines).argsort(descending=True, stable=True)
    return [*zip(torch.cat(ones)[order].tolist(), torch.cat(others)[order].tolist(), strict=True)]


class _Groups:
    """Disjoint sets (Tarjan 1975) of the numbers below a count."""

    def __init__(self, count: int) -> None:
        self._above, self._size = [*range(count)], [1] * count

    def of(self, row: int) -> int:
        while self._above[row] != row:
            self._above[row] = row = self._above[self._above[row]]
        return row

    def join(self, row: int, other: int, *, most: int | None = None) -> None:
        one, two = sorted((self.of(row), self.of(other)))
        if one != two and (most is None or self._size[one] + self._size[two] <= most):
            self._above[two] = one
            self._size[one] += self._size[two]
