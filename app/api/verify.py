"""POST /attention/{id}/verify: is the map faithful?"""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.api.hangup import unless_gone
from app.api.problems import UNANSWERED, problems
from app.api.schemas import FaithfulnessCurve, VerifyResponse
from app.api.services import Parts, Timing
from app.maps.choice import Method, choose, find_class
from app.maps.faithfulness import Curve, Fill

router = APIRouter()


@router.post("/attention/{id}/verify", response_model=VerifyResponse, responses=problems(404, 422, 503))
async def verify(
    request: Request,
    parts: Parts,
    stages: Timing,
    id: str,
    method: Annotated[Method, Query(description="As for GET /attention/{id}, like layer, head and against")] = (
        "class_token"
    ),
    layer: str | None = None,
    head: str = "mean",
    label: Annotated[str | None, Query(description="The class whose score is followed; the top one")] = None,
    against: str | None = None,
    fill: Annotated[Fill, Query(description="What covers a patch; blur is a Gaussian one patch wide")] = "mean",
    steps: Annotated[int, Query(ge=4, le=64, description="Points of a curve after the first")] = 16,
    random_orders: Annotated[int, Query(ge=1, le=8, description="Orders to compare with")] = 3,
) -> Response:
    """Cover the picture patch by patch, what the map calls important first, and follow a class's score (deletion); then
    uncover it in the same order (insertion). Petsiuk et al. 2018, RISE, arXiv 1806.07421.

    A map that tells the truth has a smaller deletion area and a larger insertion area than random orders; how sure that
    is can be read from the spread of random_areas. It is a statement about this picture, class and fill alone.
    """
    record = await parts.kept(id, stages)
    manifest = parts.bundle.manifest
    chosen = choose(
        record,
        manifest,
        method=method,
        layer=layer,
        head=head,
        label=label if method == "evidence" else None,
        against=against,
    )
    index = int(record.maps.classes[0 if label is None else find_class(record.maps, manifest.labels, label)])
    verifying = parts.verifier.verify(
        record.pixels, chosen.values, index=index, fill=fill, steps=steps, random_orders=random_orders, seed=id
    )
    curves = await unless_gone(request, asyncio.ensure_future(verifying))
    if curves is None:
        return Response(status_code=UNANSWERED)
    deletion, insertion = curves
    answer = VerifyResponse(
        id=id,
        model=parts.model_name,
        method=chosen.method,
        layer=chosen.layer,
        head=chosen.head,
        against=chosen.against,
        recipe=chosen.recipe,
        label=manifest.labels[index],
        index=index,
        score=float(deletion.scores[0]),
        fill=fill,
        steps=len(deletion.fractions) - 1,
        random_orders=random_orders,
        deletion=_answer(deletion, gain=-1),
        insertion=_answer(insertion, gain=1),
    )
    return Response(answer.model_dump_json(), media_type="application/json")


def _answer(curve: Curve, *, gain: int) -> FaithfulnessCurve:
    """`gain` is the direction in which an area is better."""
    random_area = sum(curve.random_areas) / len(curve.random_areas)
    return FaithfulnessCurve(
        fractions=curve.fractions.tolist(),
        scores=curve.scores.tolist(),
        random=curve.random.mean(axis=0).tolist(),
        area=curve.area,
        random_area=random_area,
        random_areas=curve.random_areas,
        gain=gain * (curve.area - random_area),
    )
