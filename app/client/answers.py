"""What the service answers. Fields that a newer service adds are kept; tests compare these models with its OpenAPI."""

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    model_config = ConfigDict(extra="allow")


class Prediction(Answer):
    label: str
    index: int
    score: float


class ImageInfo(Answer):
    """The upright image as decoded."""

    width: int
    height: int
    format: str


class Result(Answer):
    """One classified image. `id` and `attention` are there when its maps were kept."""

    predictions: list[Prediction]
    image: ImageInfo
    id: str | None = None
    attention: str | None = None


class Embedded(Answer):
    """What the head reads of one image."""

    embedding: list[float]
    image: ImageInfo
    id: str | None = None
    attention: str | None = None


class Curve(Answer):
    """A label's score while patches are covered or uncovered, and while they are in random orders."""

    fractions: list[float]
    scores: list[float]
    random: list[float]
    area: float
    random_area: float
    random_areas: list[float]
    gain: float


class Faithfulness(Answer):
    """Whether a map finds the patches that a label's score depends on."""

    label: str
    index: int
    score: float
    deletion: Curve
    insertion: Curve


class Problem(Answer):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None


class ServiceProblem(Exception):
    """The service refused, or failed. `problem` says why."""

    def __init__(self, problem: Problem, *, retry_after_s: float | None = None) -> None:
        """`retry_after_s` is when the service wants to be asked again, where it said so."""
        super().__init__(f"{problem.status} {problem.title}: {problem.detail}")
        self.problem = problem
        self.retry_after_s = retry_after_s


def problem_of(status: int, body: bytes) -> Problem:
    """The problem in a body; one that a proxy wrote in its place becomes a problem too."""
    try:
        return Problem.model_validate_json(body)
    except ValueError:
        return Problem(type="about:blank", title="No answer of the service", status=status, detail=_start(body))


def _start(body: bytes) -> str:
    text = " ".join(body.decode(errors="replace").split())
    return text[:200] or "The body is empty."
