"""What a bundle says the model is, and which files it has.

This is the contract between export, which writes it, and the service, which reads it. It is defined here alone.
"""

from math import prod
from typing import Annotated, Any, Literal

from annotated_types import Interval
from pydantic import BaseModel, ConfigDict, Field, JsonValue, PositiveFloat, model_validator

from app.images.preprocess import ImageSpec, Side

PictureFormat = Literal["png", "json"]

CLASSIFY_GRAPH = "classify.onnx"
EXPLAIN_GRAPH = "explain.onnx"
COMBINED_GRAPH = "combined.onnx"
WEIGHTS = "weights.bin"
PICTURE_FORMATS: tuple[PictureFormat, ...] = ("png", "json")

Precision = Literal["fp32", "bf16", "int8", "fp16"]
ON_GPUS: tuple[Precision, ...] = ("fp32", "fp16")  # CPUs run every precision
Prefix = Literal["class", "distillation", "register"]
Count = Annotated[int, Interval(ge=1, le=2**20)]  # of numbers; beyond this and the next, one is a mistake
Few = Annotated[int, Interval(ge=1, le=2**10)]
LEAST_TEMPERATURE = 1e-6  # with much smaller ones, logits overflow
Temperature = Annotated[float, Field(ge=LEAST_TEMPERATURE, allow_inf_nan=False)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


def graph_files(precision: Precision) -> tuple[str, ...]:
    """The graphs that a bundle has: the one that CPUs run, and the two that GPUs run where they run the precision."""
    return (CLASSIFY_GRAPH, EXPLAIN_GRAPH, COMBINED_GRAPH) if precision in ON_GPUS else (COMBINED_GRAPH,)


def picture_file(name: str, kind: PictureFormat) -> str:
    """Where one of the model's own pictures lies in a bundle: drawn, or as its numbers."""
    return f"inspect/{name}.{kind}"


def _allow_more(schema: dict[str, Any]) -> None:
    """A file that has too much is wrong; an answer that has more than its schema is of a later version."""
    del schema["additionalProperties"]


class Frozen(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        ser_json_bytes="base64",
        val_json_bytes="base64",
        json_schema_extra=_allow_more,
    )


class Tokens(Frozen):
    """Order of the tokens: the prefix, then the patches row by row."""

    patch: Side  # pixels
    grid: tuple[Side, Side]  # rows, columns
    prefix: tuple[Prefix, ...]


class Parity(Frozen):
    """Largest differences between PyTorch and ONNX Runtime, measured at export. None: the model does not have it."""

    pictures: int
    logits: float | None = None  # relative to the largest logit
    embedding: float  # relative to its largest number
    attention: float  # absolute
    rollout: float  # absolute
    evidence: float | None = None  # relative to the largest part of a logit
    distance: float  # patches
    lens: float | None = None  # absolute
    receipt: float | None = None  # a logit minus the sum of its parts, relative to the largest part


class Agreement(Frozen):
    """The lean graph against the float32 network, measured at export."""

    pictures: int
    source: Literal["drawn", "folder"] = "drawn"  # shapes that the exporter draws, or a person's own images
    ranges: int = 24  # further images of this source, which the ranges of int8 and fp16 are from
    top1: float  # share of the images that get the same label
    probability_mean: float  # mean over images of the largest difference of a label's probability
    probability_max: float
    accuracy: float | None  # share of correct labels of the graph, where the right ones are known
    accuracy_fp32: float | None = None  # and of the float32 network


class Calibration(Frozen):
    """How far the scores of the lean graph are from being probabilities, on labelled images, measured at export.

    Guo et al. 2017, arXiv 1706.04599: the expected calibration error is the mean difference between the score of the
    top label and how often it is right, over images in 15 bins of equal width.
    """

    pictures: int
    temperature: Temperature  # the most likely one, of all these images
    error_before: float  # of scores without a temperature
    error_after: float  # each half of the images has the temperature of the other half


class Tolerance(Frozen):
    """What another machine's numbers may differ by from PyTorch's, each in the unit of `Parity`.

    fp32: the tolerance of parity, or four times what export found for this very image where that is more, because
    where attention is sharp, rounding weighs more. int8 and fp16: every kind of processor adds in another order, and
    where the last bits differ, rounding to few bits tips over. So a replica may be as far from PyTorch as export was,
    several times. What computes nonsense is much further away.
    """

    logits: PositiveFloat
    embedding: PositiveFloat
    attention: PositiveFloat
    rollout: PositiveFloat
    evidence: PositiveFloat
    distance: PositiveFloat
    lens: PositiveFloat


class KnownAnswer(Frozen):
    """A small image, and what PyTorch computed for it in float32: app/inference/known_answer.py compares."""

    size: tuple[Side, Side]  # height, width
    pixels: bytes  # uint8, (height, width, 3); in JSON as URL-safe base64
    logits: tuple[float, ...]  # none without a head, nor classes
    classes: tuple[int, ...]  # the most likely ones, which evidence and lens are for, the most likely first
    sums: dict[str, tuple[float, ...]]  # of each other output of the explaining graph, flat
    tolerance: Tolerance

    @model_validator(mode="after")
    def _is_whole(self) -> "KnownAnswer":
        if len(self.pixels) != 3 * self.size[0] * self.size[1]:
            raise ValueError("pixels are not those of an image of this size")
        return self


class Manifest(Frozen):
    format: Literal[4]
    name: Annotated[str, Field(min_length=1, max_length=200)]
    family: str  # the library that the weights come from, whose numerics the graphs reproduce
    precision: Precision
    image: ImageSpec
    tokens: Tokens
    layers: Few
    heads: Few
    # What the head reads; app/maps/choice.py: ROWS.
    pool: Literal["cls", "cls_mean", "mean", "mean_all", "map", "map_all"]
    explains: dict[str, tuple[Count, ...]]  # outputs of the explaining graph, and the shape of one image's
    features: Count  # numbers of an embedding: what the head reads
    labels: tuple[str, ...]  # none for a model without a head
    labels_from: str = ""  # where they were found; empty for a checkpoint of this project
    prompts: tuple[str, ...] = ()  # sentences with {} for the label, where a text tower has read the labels
    wordnet: tuple[str, ...] = ()  # WordNet id of each label, such as n02099601, where they are known
    score: Literal["softmax", "sigmoid"]
    temperature: Temperature = 1.0  # scores are those of logits / temperature
    parity: Parity
    agreement: Agreement | None = None  # None for fp32 without a folder of images: parity says all; and without labels
    calibration: Calibration | None = None  # None where no labelled images were given
    known_answer: KnownAnswer
    overrides: dict[str, str] = {}  # facts that a person has set, in place of what the checkpoint says
    figures: dict[str, float] = {}  # the checkpoint's own, measured on held-out images in float32
    recipe: dict[str, JsonValue] = {}  # how a checkpoint of this project was learned
    inspect: dict[str, str] = {}  # titles of the model's own pictures by name, in the order to show them
    made_with: dict[str, str]
    files: dict[str, Sha256]

    @model_validator(mode="after")
    def _complete(self) -> "Manifest":
        pictures = {picture_file(name, kind) for name in self.inspect for kind in PICTURE_FORMATS}
        missing = {*graph_files(self.precision), WEIGHTS, *pictures} - self.files.keys()
        if missing:
            raise ValueError(f"files lacks {', '.join(sorted(missing))}")
        if len(self.known_answer.logits) != len(self.labels):
            raise ValueError("known_answer does not have one logit for each label")
        sees = len(self.tokens.prefix) + prod(self.tokens.grid)
        if self.explains.get("attention") != (self.layers, self.heads, sees):
            raise ValueError("layers, heads and tokens are not those of attention in explains")
        if self.image.size != tuple(side * self.tokens.patch for side in self.tokens.grid):
            raise ValueError("tokens do not cover an image of this size")
        if self.known_answer.sums.keys() != self.explains.keys() - {"logits", "classes"}:
            raise ValueError("known_answer does not have the outputs of the explaining graph")
        return self
