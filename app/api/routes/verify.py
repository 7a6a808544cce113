"""POST /attention/{id}/verify: is the map faithful?"""

from functools import partial
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Depends, Query, Request

from app.api.disconnect import cancel_on_disconnect
from app.api.parameters import ChoiceQuery, FillQuery, refuse_body
from app.api.results import ImageAnswer
from app.api.route import CheckedRoute
from app.api.services import services_of
from app.door.problems import problems
from app.errors import NoClasses
from app.maps.choice import Chosen, check_choice, choose
from app.maps.covering import Fill
from app.maps.faithfulness import FaithfulnessCurve, Trial
from app.maps.labels import find_index
from app.telemetry.request_state import RequestState


class VerifyResponse(Chosen, ImageAnswer):
    """Whether a map finds the patches that a label's score depends on."""

    label: str  # whose score is followed
    index: int
    score: float  # of the untouched image
    fill: Fill
    steps: int
    random_orders: int
    deletion: FaithfulnessCurve
    insertion: FaithfulnessCurve


router = APIRouter(tags=["maps"], route_class=CheckedRoute)


@router.post(
    "/attention/{id}/verify",
    summary="Measure how faithful a map is",
    dependencies=[Depends(refuse_body)],
    responses=problems(400, 404, 409, 422),
)
async def verify(
    request: Request,
    id: str,
    choice: ChoiceQuery,
    fill: FillQuery = "mean",
    steps: Annotated[int, Query(ge=4, le=64, description="Points of each curve after the first")] = 16,
    random_orders: Annotated[int, Query(ge=1, le=8, description="Number of random orders to compare with")] = 3,
) -> VerifyResponse:
    """Petsiuk et al. 2018, RISE, arXiv 1806.07421.

    Deletion covers the image patch by patch, the most important patches of the map first, and follows the score of a
    class: `label`, by default the top one. Insertion uncovers the patches in the same order. A faithful map has a
    smaller deletion area and a larger insertion area than random orders; the spread of `random_areas` shows how certain
    that is. The result holds for this image, class and fill only.
    """
    services = services_of(request)
    manifest = services.bundle.manifest
    if not manifest.labels:
        raise NoClasses
    kept = await services.kept(id, request)
    check_choice(choice.without("label"), manifest)
    maps = await services.maps(id, kept, request, choice)
    index = find_index(maps, manifest.labels, choice.label)
    shown = choose(maps, manifest, choice.without("label"))
    running = services.coverer.run(
        kept.image.pixels,
        partial(Trial.of, shown.values, steps=steps, random_orders=random_orders, seed=bytes(kept.image.pixels)),
        lambda logits: services.scoring.scores(logits)[index],
        fill=fill,
        deadline=RequestState.of(request.scope).deadline,
    )
    trial, scores = await cancel_on_disconnect(request, running)
    deletion, insertion = trial.curves(np.array(scores))
    return VerifyResponse(
        **shown.chosen.model_dump(exclude={"label", "index"}),
        id=id,
        model=services.model_name,
        label=manifest.labels[index],
        index=index,
        score=deletion.scores[0],
        fill=fill,
        steps=len(deletion.fractions) - 1,
        random_orders=random_orders,
        deletion=deletion,
        insertion=insertion,
    )
