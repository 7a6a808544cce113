"""GET /attention: maps of an image that was classified before."""

from dataclasses import fields
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.responses import JSONResponse

from app.api.conditional import answer_once
from app.api.problems import problems
from app.api.representation import MEDIA_TYPES, RENDERERS, Format, View, preferred_format, representations
from app.api.services import ChoiceDep, ServicesDep, StagesDep
from app.drawing.colormaps import Colormap
from app.drawing.heatmap import Interpolation, Style
from app.drawing.scale import Scale, limits
from app.maps.choice import Choice, choose

HOW_TO_ASK = {
    "how": "POST an image to /classify; its answer has an id. Then GET /attention/{id} for the map as a PNG, "
    "/attention/{id}/wall for all heads.",
    "parameters": ", ".join([*Choice.model_fields, *(field.name for field in fields(Style)), "scale", "format"])
    + " (png, json, npy); see /docs",
}

router = APIRouter()


async def _style(
    overlay: Annotated[bool, Query(description="Draw the map over the image")] = True,
    alpha: Annotated[float, Query(ge=0, le=1, description="Opacity of the map over the image")] = 0.6,
    colormap: Annotated[
        Colormap | None, Query(description="Default: viridis; rdbu for signed numbers (evidence)")
    ] = None,
    interpolation: Annotated[
        Interpolation, Query(description="How patches are enlarged; nearest shows them as squares")
    ] = "bilinear",
    colorbar: Annotated[bool, Query(description="Draw a colour bar with the raw numbers at the right")] = False,
    threshold: Annotated[
        float | None, Query(gt=0, lt=1, description="Outline the fewest patches that hold this share of the map")
    ] = None,
) -> Style:
    return Style(
        overlay=overlay,
        alpha=alpha,
        colormap=colormap,
        interpolation=interpolation,
        colorbar=colorbar,
        threshold=threshold,
    )


@router.get(
    "/attention",
    responses=problems(404, 422, 503) | representations("png", "json", "npy"),
    summary="The same, by ?id=; without an id, how to ask",
)
@router.get("/attention/{id}", responses=problems(404, 422, 503) | representations("png", "json", "npy"))
async def attention(
    services: ServicesDep,
    stages: StagesDep,
    choice: ChoiceDep,
    style: Annotated[Style, Depends(_style)],
    id: str = "",
    scale: Annotated[Scale, Query(description="Which numbers get the first and the last colour")] = "min-max",
    format: Annotated[Format | None, Query(description="Overrides the Accept header")] = None,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
    if_none_match: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """One attention map of an image classified before: a PNG, the raw numbers as JSON, or a NumPy array."""
    if not id:
        return JSONResponse(HOW_TO_ASK)
    record = await services.kept(id, stages)
    shown = choose(record, services.bundle.manifest, choice)
    kind = format or preferred_format(accept)
    view = View(
        id=id,
        model=services.model_name,
        record=record,
        map=shown,
        style=style,
        limits=limits(shown.values, shown.siblings, scale, signed=shown.signed),
    )
    return await answer_once(
        recipe=(id, services.bundle.digest, shown.chosen, kind, style, scale),
        if_none_match=if_none_match,
        media_type=MEDIA_TYPES[kind],
        pool=services.cpu_pool,
        stages=stages,
        render=partial(RENDERERS[kind], view),
    )
