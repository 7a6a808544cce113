"""Every picture that a model has of itself, in the order in which they are shown."""

from app.bundle import ImageSpec
from app.inference.contract import Engine
from export.portraits.distances import reference_distance
from export.portraits.filters import filters
from export.portraits.portrait import Portrait
from export.portraits.relative_bias import relative_bias
from export.portraits.similarity import positions
from model.vit import VisionTransformer


def portraits(model: VisionTransformer, engine: Engine, spec: ImageSpec) -> list[Portrait]:
    """Those that there are for this model; `engine` runs its graphs on images prepared as `spec` says."""
    distance = reference_distance(engine, spec, patch_size=model.config.patch_size)
    return [portrait for portrait in (filters(model), positions(model), relative_bias(model), distance) if portrait]
