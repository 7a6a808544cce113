"""GET /attention/{id}/report: which heads mattered, and when the answer formed."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.api.problems import problems
from app.api.schemas import HeadNumbers, Lens, ReportResponse
from app.api.services import Parts, Timing
from app.maps.choice import find_class
from app.maps.heads import head_report

router = APIRouter()


@router.get("/attention/{id}/report", responses=problems(404, 422, 503))
async def report(
    parts: Parts,
    stages: Timing,
    id: str,
    label: Annotated[str | None, Query(description="Index or name, among the most likely classes; the top one")] = None,
) -> ReportResponse:
    """By layer and head: entropy of the attention, how far it reaches, and what it adds to the class's logit."""
    record = await parts.kept(id, stages)
    labels, maps = parts.bundle.manifest.labels, record.maps
    kept = 0 if label is None else find_class(maps, labels, label)
    numbers = head_report(maps, kept)
    lens = None
    if maps.lens is not None:
        lens = Lens(classes=[labels[i] for i in maps.classes], scores=maps.lens.tolist())
    return ReportResponse(
        id=id,
        model=parts.model_name,
        label=labels[maps.classes[kept]],
        index=int(maps.classes[kept]),
        logit=float(maps.logits[kept]),
        predictions=list(record.predictions),
        heads=HeadNumbers(
            entropy=numbers.entropy.tolist(),
            distance=numbers.distance.tolist(),
            contribution=numbers.contribution.tolist(),
            share=numbers.share.tolist(),
        ),
        lens=lens,
    )
