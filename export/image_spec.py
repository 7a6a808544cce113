"""The preprocessing of a checkpoint as a bundle states it. Separate from bundle.py, which needs ONNX."""

from app.images.preprocess import ImageSpec, Resize
from model.preprocessing import Preprocessing


def image_spec(preprocessing: Preprocessing) -> ImageSpec:
    """The same facts in the fields of the manifest."""
    facts = preprocessing.to_json()
    resize = Resize(mode=facts.pop("resize_mode"), size=facts.pop("resize_size"))
    return ImageSpec(resize=resize, **facts)
