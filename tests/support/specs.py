"""The rule of resizing of a model that reads `size` out of `resize`, each height and width in pixels."""

from typing import Any

from app.images.preprocess import ImageSpec, Resize


def spec_of(size: tuple[int, int], resize: tuple[int, int] | Resize | None = None, **changes: Any) -> ImageSpec:
    fields: dict[str, Any] = {
        "size": size,
        "resize": resize if isinstance(resize, Resize) else Resize(mode="shortest", size=resize or size),
        "crop": "center",
        "interpolation": "bicubic",
        "mean": (0.5, 0.5, 0.5),
        "std": (0.5, 0.5, 0.5),
    }
    return ImageSpec(**{**fields, **changes})
