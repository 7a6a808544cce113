"""What goes over the wire."""

from typing import Literal

from pydantic import BaseModel, Field

from app.api.problems import Problem
from app.bundle import Manifest
from app.inference.labels import Prediction
from app.maps.choice import Head, Layer, Method, Receipt
from app.maps.faithfulness import Fill


class ModelName(BaseModel):
    name: str
    digest: str  # sha256 of the bundle's manifest


class ImageInfo(BaseModel):
    """The upright picture as decoded."""

    width: int
    height: int
    format: str


class Result(BaseModel):
    """One image. `id` and `attention` are there when its maps were kept."""

    id: str | None = None
    predictions: list[Prediction]
    attention: str | None = None
    image: ImageInfo


class FailedResult(BaseModel):
    """Stands in the place of an image that could not be used."""

    error: Problem


class ClassifyResponse(BaseModel):
    model: ModelName
    results: list[Result | FailedResult]


class AttentionResponse(BaseModel):
    """One map: its recipe and its raw numbers."""

    id: str
    model: ModelName
    method: Method
    layer: Layer
    head: Head
    label: str | None  # of evidence
    against: str | None
    recipe: str
    grid: tuple[int, int]  # rows, columns
    values: list[float]  # row by row, unscaled
    min: float
    max: float
    limits: tuple[float, float]  # the numbers that the first and the last colour of the picture stand for
    sum: float
    class_token_mass: float
    distillation_mass: float
    register_mass: float
    image: tuple[int, int]  # width, height of the upright original
    receipt: Receipt | None  # of evidence
    crop_box: tuple[float, float, float, float]  # left, top, right, bottom of what the network saw, in its pixels


class WallResponse(BaseModel):
    """Where each head's map lies on a wall: layer l and head h at origin + (h, l) * (cell + gap), in pixels."""

    id: str
    model: ModelName
    layers: int
    heads: int
    grid: tuple[int, int]  # rows, columns of each map
    origin: tuple[int, int]  # left, top
    cell: tuple[int, int]  # width, height
    gap: int
    size: tuple[int, int]  # width, height of the picture without a colour bar
    min: float  # of all maps
    max: float
    limits: tuple[float, float]  # the numbers that the first and the last colour stand for


class ModelPicture(BaseModel):
    """One of the model's own pictures."""

    name: str
    title: str
    png: str
    numbers: str = Field(alias="json")


class ModelPicturesResponse(BaseModel):
    pictures: list[ModelPicture]


class FaithfulnessCurve(BaseModel):
    """The score of a class while patches are covered (deletion) or uncovered (insertion), most important first."""

    fractions: list[float]  # of the patches, 0 to 1
    scores: list[float]
    random: list[float]  # mean over random orders
    area: float  # under the scores
    random_area: float  # mean of random_areas
    random_areas: list[float]  # one for each random order
    gain: float  # how much better than random_area: below it for deletion, above it for insertion


class VerifyResponse(BaseModel):
    """Whether a map names the patches that a class's score depends on."""

    id: str
    model: ModelName
    method: Method
    layer: Layer
    head: Head
    against: str | None  # evidence: less that for this label
    recipe: str
    label: str
    index: int
    score: float  # of the untouched picture
    fill: Fill
    steps: int
    random_orders: int
    deletion: FaithfulnessCurve
    insertion: FaithfulnessCurve


class HeadNumbers(BaseModel):
    """A list of heads for every layer."""

    entropy: list[list[float]] = Field(description="bits, of the class token's row over all tokens")
    distance: list[list[float]] = Field(description="patches, mean attention distance")
    contribution: list[list[float]] = Field(description="direct contribution to the logit")
    share: list[list[float | None]] = Field(description="contribution / logit; null where the logit is 0")


class Lens(BaseModel):
    """The logit lens: what the head makes of each layer."""

    classes: list[str]
    scores: list[list[float]] = Field(description="a list of classes for every layer")


class ReportResponse(BaseModel):
    """Numbers of one picture and one class by layer and head."""

    id: str
    model: ModelName
    label: str
    index: int
    logit: float
    predictions: list[Prediction]  # the classes there is evidence for, as POST /classify ranked them
    heads: HeadNumbers
    lens: Lens | None


class BatchLatency(BaseModel):
    """Running mean over the batches of one size, from warm-up on."""

    graph: Literal["classify", "explain"]
    batch: int
    milliseconds: float


class ModelResponse(BaseModel):
    name: str
    digest: str
    manifest: Manifest
    provider: str  # of ONNX Runtime, as really in use
    max_batch: int
    best_batch: dict[Literal["classify", "explain"], int]  # most images that are run at once, by graph
    latency: list[BatchLatency]
