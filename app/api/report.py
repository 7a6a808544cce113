"""GET /attention/{id}/report: which heads mattered, and when the answer formed."""

from dataclasses import asdict
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from app.api.problems import problems
from app.api.services import ImageAnswer, ServicesDep, StagesDep
from app.inference.labels import Prediction
from app.maps.choice import find_class
from app.maps.heads import head_report


class HeadNumbers(BaseModel):
    """A list of heads for every layer."""

    entropy: list[list[float]] = Field(description="entropy of the class token's row over all tokens, in bits")
    distance: list[list[float]] = Field(description="mean attention distance, in patches")
    contribution: list[list[float]] = Field(description="direct contribution to the logit")
    share: list[list[float | None]] = Field(description="contribution / logit; null where the logit is 0")


class Lens(BaseModel):
    """The logit lens: the scores if the head read each layer."""

    classes: list[str]
    scores: list[list[float]] = Field(description="a list of classes for every layer")


class ReportResponse(ImageAnswer):
    """Numbers of one image and one class by layer and head."""

    label: str
    index: int
    logit: float
    predictions: list[Prediction]  # the classes that have evidence, in the order of POST /classify
    heads: HeadNumbers
    lens: Lens | None


router = APIRouter()


@router.get("/attention/{id}/report", responses=problems(404, 422, 503))
async def report(
    request: Request,
    services: ServicesDep,
    stages: StagesDep,
    id: str,
    label: Annotated[
        str | None, Query(description="Label (index or name) among the most likely classes. Default: the top label")
    ] = None,
) -> ReportResponse:
    """By layer and head: entropy of the attention, how far it reaches, and what it adds to the class's logit."""
    record = await services.kept(id, stages)
    labels, maps, lens = services.bundle.manifest.labels, record.maps, record.maps.lens
    k = 0 if label is None else find_class(maps, labels, label)
    with stages.time("render"):
        numbers = await services.drawings.draw(partial(head_report, maps, k), deadline=request.state.deadline)
    return ReportResponse(
        id=id,
        model=services.model_name,
        label=labels[maps.classes[k]],
        index=int(maps.classes[k]),
        logit=float(maps.logits[k]),
        predictions=list(record.predictions),
        heads=HeadNumbers(**{name: of_heads.tolist() for name, of_heads in asdict(numbers).items()}),
        lens=None if lens is None else Lens(classes=[labels[i] for i in maps.classes], scores=lens.tolist()),
    )
