"""Principal components of the filters that the network applies to pixels (paper, Fig. 7 left)."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from export.pictures.picture import Picture, sheet
from model.patch_embed import DualNormPatchEmbed
from model.vit import VisionTransformer

MOST = 28  # as in the paper
COLUMNS = 7
TILE_PX = 96
DECIMALS = 6

Floats = npt.NDArray[np.float64]


class Components(NamedTuple):
    components: Floats  # (K, 3, p, p), of length 1, the largest variance first
    explained_variance_ratio: Floats  # (K,), of the variance of all filters


def filters(model: VisionTransformer) -> Picture | None:
    """The first 28 components; None if all filters are equal."""
    kernels, name, words = rgb_filters(model)
    found = principal_components(kernels)
    shares = found.explained_variance_ratio
    if not len(shares):
        return None
    title = f"Principal components of the {words}"
    png = sheet(
        title,
        f"The first {len(shares)} hold {100 * shares.sum():.1f} % of the variance of {len(kernels)} filters. "
        "Each on its own scale; gray is 0.",
        [_displayed(component) for component in found.components],
        columns=COLUMNS,
        zoom=max(1, round(TILE_PX / kernels.shape[-1])),
        captions=[f"{number}: {100 * share:.1f} %" for number, share in enumerate(shares, 1)],
    )
    numbers = {
        "of": name,
        "filters": len(kernels),
        "explained_variance_ratio": shares.round(DECIMALS).tolist(),
        "components": found.components.round(DECIMALS).tolist(),
    }
    return Picture(name="filters", title=title, png=png, numbers=numbers)


def rgb_filters(model: VisionTransformer) -> tuple[Floats, str, str]:
    """Filters (D, 3, p, p) on the normalised image, the layer's name, and words for the filters.

    A hybrid projects features, not pixels: the standardised first convolution of its stem is used instead. A dual norm
    weights the pixels of a patch before the projection: these filters include its weights, but not its scaling.
    """
    source = model.patch_embed
    if isinstance(source, DualNormPatchEmbed):
        p = source.patch_size
        weight = source.proj.weight * source.norm_patch.weight  # (D, p * p * 3)
        kernels, name = weight.unflatten(1, (p, p, 3)).permute(0, 3, 1, 2), "patch_embed.proj"
    elif source.backbone is not None:
        kernels, name = source.backbone.stem.conv.kernel(), "patch_embed.backbone.stem.conv"
    else:
        kernels, name = source.proj.weight, "patch_embed.proj"
    words = "patch-embedding filters" if name == "patch_embed.proj" else "ResNet stem's first filters"
    return kernels.detach().double().numpy(), name, words


def principal_components(kernels: Floats) -> Components:
    """The components of filters (D, 3, p, p) around their mean: at most 28, without rounding errors.

    The sign of a component has no meaning. Its largest entry is made positive, so that it is the same every time.
    """
    flat = kernels.reshape(len(kernels), -1)
    _, spread, directions = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)
    rounding = max(flat.shape) * np.finfo(np.float32).eps * np.abs(flat).max()
    kept = min(MOST, int((spread > rounding).sum()))
    directions = directions[:kept]
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1, keepdims=True), axis=1)
    shares = spread[:kept] ** 2 / (spread**2).sum() if kept else np.zeros(0)
    return Components((directions * np.sign(largest)).reshape(kept, *kernels.shape[1:]), shares)


def _displayed(component: Floats) -> Image.Image:
    """The component as an image, with 0 in the middle of the range and the largest entry at one end."""
    unit = component / np.abs(component).max() / 2 + 0.5
    return Image.fromarray(np.rint(255 * unit).astype(np.uint8).transpose(1, 2, 0))
