"""GET /attention: maps of a picture that was classified before."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.responses import JSONResponse

from app.api.conditional import answer_once
from app.api.problems import problems
from app.api.representation import MEDIA_TYPES, RENDERERS, Format, View, preferred_format, representations
from app.api.services import Parts, Timing
from app.drawing.colormaps import Colormap
from app.drawing.heatmap import Interpolation, Style
from app.drawing.scale import Scale, limits
from app.maps.choice import Method, choose

HOW_TO_ASK = {
    "how": "POST a picture to /classify; its answer has an id. Then GET /attention/{id} for the map as a picture, "
    "/attention/{id}/wall for all heads.",
    "parameters": "method, layer, head, label, against, overlay, alpha, colormap, interpolation, scale, colorbar, "
    "threshold, format (png, json, npy); see /docs",
}

router = APIRouter()


async def _style(
    overlay: Annotated[bool, Query(description="Lay the map over the picture")] = True,
    alpha: Annotated[float, Query(ge=0, le=1, description="Opacity of the map on the picture")] = 0.6,
    colormap: Annotated[Colormap | None, Query(description="viridis, or rdbu where numbers have a sign")] = None,
    interpolation: Annotated[Interpolation, Query(description="nearest shows the patches as they are")] = "bilinear",
    colorbar: Annotated[bool, Query(description="Put a bar with the raw numbers on the right")] = False,
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
    "/attention", responses=problems(404, 422, 503) | representations("png", "json", "npy"), summary="The same, by ?id="
)
@router.get("/attention/{id}", responses=problems(404, 422, 503) | representations("png", "json", "npy"))
async def attention(
    parts: Parts,
    stages: Timing,
    style: Annotated[Style, Depends(_style)],
    id: str = "",
    method: Annotated[
        Method, Query(description="class_token: one row; rollout: all layers; evidence: for a label")
    ] = "class_token",
    layer: Annotated[
        str | None, Query(description="0 to L-1, negative from the end, mean; the last; evidence: sum")
    ] = None,
    head: Annotated[str, Query(description="0 to H-1, mean, max or min")] = "mean",
    label: Annotated[str | None, Query(description="evidence: for this label, by index or name; the likeliest")] = None,
    against: Annotated[str | None, Query(description="evidence: less that for this label")] = None,
    scale: Annotated[Scale, Query(description="Which numbers are at the ends of the colours")] = "min-max",
    format: Annotated[Format | None, Query(description="Overrules the Accept header")] = None,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
    if_none_match: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """One attention map of a picture classified before: a PNG, the raw numbers as JSON, or a NumPy array."""
    if not id:
        return JSONResponse(HOW_TO_ASK)
    record = await parts.kept(id, stages)
    chosen = choose(record, parts.bundle.manifest, method=method, layer=layer, head=head, label=label, against=against)
    kind = format or preferred_format(accept)
    view = View(
        id=id,
        model=parts.model_name,
        record=record,
        map=chosen,
        style=style,
        limits=limits(chosen.values, chosen.siblings, scale, signed=chosen.signed),
    )
    made_of = (chosen.method, chosen.layer, chosen.head, chosen.label, chosen.against)
    return await answer_once(
        recipe=(id, parts.bundle.digest, made_of, kind, style, scale),
        if_none_match=if_none_match,
        media_type=MEDIA_TYPES[kind],
        pool=parts.cpu_pool,
        stages=stages,
        render=partial(RENDERERS[kind], view),
    )
