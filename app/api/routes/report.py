"""GET /attention/{id}/report: which heads mattered, and when the answer formed."""

from functools import partial
from typing import Annotated

from fastapi import Query, Request
from pydantic import BaseModel, Field

from app.api.results import ImageAnswer
from app.api.route import CheckedRouter
from app.api.services import services_of
from app.errors import NoClasses
from app.http.problems import problems
from app.inference.scoring import Prediction
from app.maps.choice import Choice
from app.maps.heads import head_report
from app.maps.labels import find_class
from app.telemetry.request_state import RequestState


class HeadNumbers(BaseModel):
    """A list of heads for every layer."""

    entropy: list[list[float]] = Field(description="entropy of the class token's row over all tokens, in bits")
    distance: list[list[float]] = Field(description="mean attention distance, in patches")
    contribution: list[list[float]] | None = Field(description="direct contribution to the logit; null without a head")
    share: list[list[float | None]] | None = Field(description="contribution / logit; null where the logit is 0")


class Lens(BaseModel):
    """The logit lens: the scores if the head read each layer."""

    classes: list[str]
    scores: list[list[float]] = Field(description="one list per layer, in the order of `classes`")


class ReportResponse(ImageAnswer):
    """Numbers of one image and one label by layer and head. A model without a head has no labels."""

    label: str | None
    index: int | None
    logit: float | None
    predictions: list[Prediction]  # the most likely ones; `label` in the last place if that is another
    heads: HeadNumbers
    lens: Lens | None


router = CheckedRouter(tags=["maps"])


@router.get("/attention/{id}/report", summary="Get numbers by head and layer", responses=problems(404, 409, 422))
async def report(
    request: Request,
    id: str,
    label: Annotated[
        str | None,
        Query(description="Index or name of any label. Default: the top label"),
    ] = None,
) -> ReportResponse:
    """Return the entropy of each head's attention, its distance, and its contribution to the logit of a label."""
    services = services_of(request)
    kept = await services.kept(id, request)
    scoring, labels = services.scoring, services.scoring.labels
    if label is not None and not labels:
        raise NoClasses
    maps = await services.maps(id, kept, request, Choice(method="evidence", label=label))
    lens = maps.lens
    k = find_class(maps, labels, label) if labels else None
    index = None if k is None else int(maps.classes[k])
    state = RequestState.of(request.scope)
    with state.stages.time("render"):
        numbers = await services.drawings.draw(partial(head_report, maps, k), deadline=state.deadline)
    return ReportResponse(
        id=id,
        model=services.model_name,
        label=None if index is None else labels[index],
        index=index,
        logit=None if index is None else float(maps.logits[index]),
        predictions=scoring.predictions(scoring.scores(maps.logits), maps.classes),
        heads=HeadNumbers.model_validate({k: None if n is None else n.tolist() for k, n in numbers.items()}),
        lens=None if lens is None else Lens(classes=[labels[i] for i in maps.classes], scores=lens.tolist()),
    )
