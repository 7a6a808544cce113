"""GET /model/inspect: the model's own pictures, made at export. One of them goes on while pictures are served."""

import asyncio
import hashlib
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from app.bundle import PICTURE_FORMATS, Bundle, PictureFormat, picture_file
from app.chart import draw_distance
from app.distance import DISTANCE, AttentionDistance, MeanDistance
from app.errors import UnknownPicture, problems
from app.representation import MEDIA_TYPES, preferred_format
from app.schemas import ModelPicture, ModelPicturesResponse
from app.services import Parts

router = APIRouter()


@router.get("/model/inspect", response_model=ModelPicturesResponse)
async def pictures(parts: Parts, if_none_match: Annotated[str, Header(include_in_schema=False)] = "") -> Response:
    """The model's own pictures, and where they are: which there are depends on the model."""
    headers = {"ETag": f'"{parts.bundle.digest[:32]}"', "Cache-Control": "private, max-age=3600"}
    if headers["ETag"] in if_none_match:
        return Response(status_code=304, headers=headers)
    answer = ModelPicturesResponse(
        pictures=[
            ModelPicture(
                name=name, title=title, **{kind: f"/model/inspect/{name}?format={kind}" for kind in PICTURE_FORMATS}
            )
            for name, title in parts.bundle.manifest.inspect.items()
        ]
    )
    return Response(answer.model_dump_json(by_alias=True), media_type="application/json", headers=headers)


@router.get("/model/inspect/{name}", responses=problems(404, 422))
async def picture(
    parts: Parts,
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
    made_of = (manifest.files[picture_file(name, kind)], served)
    headers = {
        "ETag": f'"{hashlib.sha256(repr(made_of).encode()).hexdigest()[:32]}"',
        "Cache-Control": "private, no-cache" if name == DISTANCE else "private, max-age=3600",
        "Vary": "Accept",
    }
    if headers["ETag"] in if_none_match:
        return Response(status_code=304, headers=headers)
    body = await asyncio.get_running_loop().run_in_executor(parts.cpu_pool, _body, parts.bundle, name, kind, served)
    return Response(body, media_type=MEDIA_TYPES[kind], headers=headers)


def _body(bundle: Bundle, name: str, kind: PictureFormat, served: MeanDistance | None) -> bytes:
    """As the export made it, or with what was served since."""
    if served is None:
        return (bundle.folder / picture_file(name, kind)).read_bytes()
    stored = (bundle.folder / picture_file(name, "json")).read_bytes()
    distance = AttentionDistance.model_validate_json(stored).model_copy(update={"served": served})
    if kind == "json":
        return distance.model_dump_json().encode()
    return draw_distance(bundle.manifest.inspect[name], distance)
