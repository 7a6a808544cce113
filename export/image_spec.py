"""The preprocessing of a checkpoint as the bundle states it: the service's pixels without ONNX."""

from app.bundle import ImageSpec, Resize
from model.preprocessing import Preprocessing


def image_spec(preprocessing: Preprocessing) -> ImageSpec:
    """The model's facts in the words of the bundle."""
    return ImageSpec(
        size=preprocessing.size,
        resize=Resize(mode=preprocessing.resize_mode, size=preprocessing.resize_size),
        crop=preprocessing.crop,
        crop_rounding=preprocessing.crop_rounding,
        interpolation=preprocessing.interpolation,
        mean=preprocessing.mean,
        std=preprocessing.std,
    )
