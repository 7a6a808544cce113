"""The embeddings of the float32 network and of the lean graph for the same images, of a model without labels."""

import torch
import torch.nn.functional as F
from torch import Tensor

from export.agreement import Both
from export.images import Images
from export.measured import Likeness

FLOOR = 0.99  # of the mean cosine; with less, a third of the images have another nearest image


def likeness(both: Both, images: Images) -> Likeness:
    """Raises ValueError below FLOOR."""
    exact, lean = (F.normalize(torch.from_numpy(rows).double()) for rows in (both.expected, both.lean["embedding"]))
    cosines = (exact * lean).sum(1)
    if not cosines.mean() >= FLOOR:
        raise ValueError(
            f"embeddings of {len(lean)} images have a mean cosine of {cosines.mean():.4f} with those in fp32, and "
            f"{FLOOR} is the least. Give --pictures FOLDER with images like those that will be served, or take "
            "--precision bf16"
        )
    return Likeness(
        pictures=len(lean),
        source=images.source,
        ranges=len(images.ranges),
        cosine_mean=cosines.mean().item(),
        cosine_least=cosines.min().item(),
        neighbours=(nearest(exact) == nearest(lean)).double().mean().item(),
    )


def nearest(directions: Tensor) -> Tensor:
    """The place of the nearest other image of each, (N,)."""
    return (directions @ directions.T).fill_diagonal_(-2).argmax(1)
