"""Rules of resizing, and what prepares uploads by them."""

from typing import Any

from app.images.decode import Limits
from app.images.preparer import Preparer
from app.images.preprocess import ImageSpec, Resize


def spec_of(size: tuple[int, int], resize: tuple[int, int] | Resize | None = None, **changes: Any) -> ImageSpec:
    """The rule of a model that reads `size` out of `resize`, each height and width in pixels."""
    if not isinstance(resize, Resize):
        resize = Resize(mode="shortest", size=resize or size)
    half = dict.fromkeys(("mean", "std"), (0.5, 0.5, 0.5))
    return ImageSpec(
        **{"size": size, "resize": resize, "crop": "center", "interpolation": "bicubic", **half, **changes}
    )


def preparer_of(spec: ImageSpec, *, thumbnail_px: int = 16) -> Preparer:
    """It accepts five megapixels."""
    return Preparer(limits=Limits(max_pixels=5_000_000, max_aspect_ratio=64), spec=spec, thumbnail_px=thumbnail_px)
