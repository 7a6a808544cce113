"""The preprocessing of a checkpoint as a bundle states it. Separate from bundle.py, which needs ONNX."""

from app.images.preprocess import ImageSpec, Resize
from model.preprocessing import Preprocessing


def image_spec(preprocessing: Preprocessing) -> ImageSpec:
    """The same facts in the fields of the manifest."""
    return ImageSpec(
        size=preprocessing.size,
        resize=Resize(mode=preprocessing.resize_mode, size=preprocessing.resize_size),
        crop=preprocessing.crop,
        crop_rounding=preprocessing.crop_rounding,
        remainder=preprocessing.remainder,
        interpolation=preprocessing.interpolation,
        mean=preprocessing.mean,
        std=preprocessing.std,
    )
