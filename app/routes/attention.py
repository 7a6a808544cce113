"""GET /attention: maps of a picture that was classified before."""

import asyncio
import hashlib
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.responses import JSONResponse

from app.attention import Method, choose
from app.errors import UnknownAttention, problems
from app.heatmap import Colormap, Interpolation, Style
from app.representation import MEDIA_TYPES, RENDERERS, Format, View, preferred_format
from app.services import Parts

HOW_TO_ASK = {
    "how": "POST a picture to /classify; its answer has an id. Then GET /attention/{id} for the map as a picture.",
    "parameters": "method, layer, head, label, against, overlay, alpha, colormap, interpolation, format; see /docs",
}

router = APIRouter()


async def _style(
    overlay: Annotated[bool, Query(description="Lay the map over the picture")] = True,
    alpha: Annotated[float, Query(ge=0, le=1, description="Opacity of the map on the picture")] = 0.6,
    colormap: Colormap = "viridis",
    interpolation: Annotated[Interpolation, Query(description="nearest shows the patches as they are")] = "bilinear",
) -> Style:
    return Style(overlay=overlay, alpha=alpha, colormap=colormap, interpolation=interpolation)


@router.get("/attention", responses=problems(404, 422), summary="The same, by ?id=")
@router.get("/attention/{id}", responses=problems(404, 422))
async def attention(
    parts: Parts,
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
    format: Annotated[Format | None, Query(description="Overrules the Accept header")] = None,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
    if_none_match: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """One attention map of a picture classified before: a PNG, the raw numbers as JSON, or a NumPy array."""
    if not id:
        return JSONResponse(HOW_TO_ASK)
    record = parts.store.get(id)
    if record is None:
        raise UnknownAttention
    chosen = choose(record, parts.bundle.manifest, method=method, layer=layer, head=head, label=label, against=against)
    kind = format or preferred_format(accept)
    recipe = (
        id,
        parts.bundle.digest,
        chosen.method,
        chosen.layer,
        chosen.head,
        label,
        against,
        kind,
        style,
    )
    etag = f'"{hashlib.sha256(repr(recipe).encode()).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "private, max-age=3600", "Vary": "Accept"}
    if etag in if_none_match:
        return Response(status_code=304, headers=headers)
    view = View(id=id, model=parts.model_name, record=record, map=chosen, style=style)
    body = await asyncio.get_running_loop().run_in_executor(parts.cpu_pool, RENDERERS[kind], view)
    return Response(body, media_type=MEDIA_TYPES[kind], headers=headers)
