"""What an export measures: members of the manifest, which the service shows as they are."""

from typing import Literal, Self

from app.bundle import Frozen, Measured, Temperature


class Measurement(Frozen):
    @classmethod
    def of(cls, measured: Measured | None) -> Self | None:
        """Read from a manifest, where it has this member."""
        return None if measured is None else cls.model_validate(measured)


class Parity(Measurement):
    """Largest differences between PyTorch and ONNX Runtime, measured at export. None: the model does not have it."""

    pictures: int
    logits: float | None = None  # relative to the largest logit
    embedding: float  # relative to its largest number
    unlike: float | None = None  # relative to the largest
    attention: float  # absolute
    rollout: float  # absolute
    evidence: float | None = None  # relative to the largest part of a logit
    distance: float  # patches
    lens: float | None = None  # absolute
    tokens: float | None = None  # relative to the largest number of an array, or in lower precision of all to all
    receipt: float | None = None  # a logit minus the sum of its parts, relative to the largest part


class Agreement(Measurement):
    """The lean graph against the float32 network, measured at export."""

    pictures: int
    source: Literal["drawn", "folder"] = "drawn"  # shapes that the exporter draws, or a person's own images
    ranges: int = 24  # further images of this source, which the ranges of int8 and fp16 are from
    top1: float  # share of the images that get the same label
    probability_mean: float  # mean over images of the largest difference of a label's probability
    probability_max: float
    accuracy: float | None  # share of correct labels of the graph, where the right ones are known
    accuracy_fp32: float | None = None  # and of the float32 network


class Likeness(Measurement):
    """Embeddings of the lean graph against those of the float32 network, of a model without labels."""

    pictures: int
    source: Literal["drawn", "folder"]
    ranges: int  # further images of this source, which the ranges of int8 and fp16 are from
    cosine_mean: float
    cosine_least: float
    neighbours: float  # share of the images with the same nearest other image among them


class Calibration(Measurement):
    """How far the scores of the lean graph are from being probabilities, on labelled images, measured at export.

    Guo et al. 2017, arXiv 1706.04599: the expected calibration error is the mean difference between the score of the
    top label and how often it is right, over images in 15 bins of equal width.
    """

    pictures: int
    temperature: Temperature  # the most likely one, of all these images
    error_before: float  # of scores without a temperature
    error_after: float  # each half of the images has the temperature of the other half
