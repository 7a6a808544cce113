"""GET /model and GET /model/inspect: what is served, and what it shows of itself.

The model's own pictures were made at export. One of them, attention distance, goes on while images are served.
"""

from functools import partial
from typing import Annotated, get_args

from fastapi import APIRouter, Header, Query, Response

from app.api.conditional import MAX_AGE_S, answer_once
from app.api.problems import problems
from app.api.representation import MEDIA_TYPES, preferred_format, representations
from app.api.schemas import BatchLatency, ModelPicture, ModelPicturesResponse, ModelResponse
from app.api.services import Parts, Timing
from app.bundle import PICTURE_FORMATS, Bundle, PictureFormat, picture_file
from app.drawing.chart import draw_distance
from app.errors import UnknownPicture
from app.inference.contract import Graph
from app.maps.distance import DISTANCE, AttentionDistance, MeanDistance

router = APIRouter()


@router.get("/model")
async def model(parts: Parts) -> ModelResponse:
    """What is served, on what, and how fast it has been so far."""
    engine = parts.engine
    return ModelResponse(
        name=parts.bundle.manifest.name,
        digest=parts.bundle.digest,
        manifest=parts.bundle.manifest,
        provider=engine.provider,
        max_batch=parts.settings.max_batch,
        best_batch={graph: engine.best_batch(graph) for graph in get_args(Graph)},
        latency=[BatchLatency(**latency._asdict()) for latency in engine.latency()],
    )


@router.get("/model/inspect")
async def pictures(parts: Parts) -> ModelPicturesResponse:
    """The model's own pictures, and where they are: which there are depends on the model."""
    return ModelPicturesResponse(
        pictures=[
            ModelPicture(
                name=name, title=title, **{kind: f"/model/inspect/{name}?format={kind}" for kind in PICTURE_FORMATS}
            )
            for name, title in parts.bundle.manifest.inspect.items()
        ]
    )


@router.get("/model/inspect/{name}", responses=problems(404, 422) | representations("png", "json"))
async def picture(
    parts: Parts,
    stages: Timing,
    name: str,
    format: Annotated[PictureFormat | None, Query(description="Overrules the Accept header")] = None,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
    if_none_match: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """A picture of the model itself, or its numbers: filters, positions, attention distance."""
    manifest = parts.bundle.manifest
    if name not in manifest.inspect:
        raise UnknownPicture(manifest.inspect)
    kind: PictureFormat = format or ("json" if preferred_format(accept) == "json" else "png")
    served = parts.distance.mean() if name == DISTANCE else None
    return await answer_once(
        recipe=(manifest.files[picture_file(name, kind)], served),
        if_none_match=if_none_match,
        media_type=MEDIA_TYPES[kind],
        pool=parts.cpu_pool,
        stages=stages,
        max_age_s=0 if name == DISTANCE else MAX_AGE_S,
        render=partial(_body, parts.bundle, name, kind, served),
    )


def _body(bundle: Bundle, name: str, kind: PictureFormat, served: MeanDistance | None) -> bytes:
    """As the export made it, or with what was served since."""
    if served is None:
        return (bundle.folder / picture_file(name, kind)).read_bytes()
    stored = (bundle.folder / picture_file(name, "json")).read_bytes()
    distance = AttentionDistance.model_validate_json(stored).model_copy(update={"served": served})
    if kind == "json":
        return distance.model_dump_json().encode()
    return draw_distance(bundle.manifest.inspect[name], distance)
