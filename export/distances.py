"""How far patches read, by layer and head, over the pictures that an export is checked on (paper, Fig. 7 right)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from app.bundle import ImageSpec
from app.chart import draw_distance
from app.distance import DISTANCE, AttentionDistance, MeanDistance
from app.preprocess import preprocess
from export.pictures import reference_pictures
from export.portrait import Portrait
from model.preprocessing import Preprocessing
from model.vit import VisionTransformer

PICTURES, BATCH = 12, 4

Measure = Callable[[npt.NDArray[np.uint8]], npt.NDArray[Any]]  # pixels (B, height, width, 3) -> distances (B, L, H)


def reference_distance(measure: Measure, spec: ImageSpec, *, patch_size: int) -> Portrait:
    """The mean of what `measure` gives for each of the reference pictures."""
    pixels = np.stack([preprocess(picture, spec)[0] for picture in reference_pictures(PICTURES)])
    found = np.concatenate([measure(batch) for batch in np.split(pixels, PICTURES // BATCH)])
    mean = MeanDistance(pictures=PICTURES, distance=found.mean(axis=0, dtype=np.float64).tolist())
    numbers = AttentionDistance(reference=mean, served=None, patch_size=patch_size)
    title = "Mean attention distance by layer and head"
    return Portrait(name=DISTANCE, title=title, png=draw_distance(title, numbers), numbers=numbers.model_dump())


@torch.inference_mode()
def distances(
    model: VisionTransformer, preprocessing: Preprocessing, pixels: npt.NDArray[np.uint8]
) -> npt.NDArray[np.floating]:
    """(B, L, H) for uint8 pixels (B, height, width, 3)."""
    mean, std = torch.tensor(preprocessing.mean), torch.tensor(preprocessing.std)
    images = ((torch.from_numpy(pixels) / 255 - mean) / std).permute(0, 3, 1, 2)
    found: npt.NDArray[np.floating] = attention_distance(
        model.attentions(images), model.config.grid, prefix=len(model.config.prefix)
    ).numpy()
    return found


def attention_distance(matrices: Tensor, grid: tuple[int, int], *, prefix: int) -> Tensor:
    """Of attention (..., T, T) after softmax, (...), in patches.

    The distance on the grid from a patch to each that it reads, weighted by attention, mean over patches. What goes to
    the tokens before the patches, which have no place, counts as no distance: rows are not scaled up to 1 again
    (Keras' probing-vits, `compute_mean_attention_dist`).
    """
    rows, columns = grid
    place = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).to(matrices.dtype)  # (N, 2)
    apart = torch.cdist(place, place)  # (N, N)
    return (matrices[..., prefix:, prefix:] * apart).sum(-1).mean(-1)
