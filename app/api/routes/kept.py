"""GET /attention/{id}/maps, /embedding and /image: what a client needs of a kept image to draw its maps itself."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal

from fastapi import Query, Request, Response

from app.api.render import ANY_FILE, FILE, Format, draw_unless_known, npy, representations
from app.api.route import CheckedRouter
from app.api.services import services_of
from app.api.tokens import DtypeField, as_dtype
from app.http.problems import problems
from app.images.preparer import jpeg
from app.maps.heads import every_map
from app.telemetry.request_state import RequestState

ANSWERS = problems(404, 422) | representations("npy")
NPY: tuple[Format, ...] = ("npy",)

router = CheckedRouter(tags=["maps"])


@router.get("/attention/{id}/maps", summary="Get all maps of an image", responses=ANSWERS, response_class=Response)
async def all_maps(request: Request, id: str, dtype: Annotated[DtypeField, Query()] = "float32") -> Response:
    """One array (maps, rows, columns): the heads of each layer, rollout, and for each of the most likely labels of the
    answer the evidence of each layer.
    """
    services = services_of(request)
    kept = await services.kept(id, request)

    async def render(kind: Format) -> Callable[[], bytes]:
        maps = await services.maps(id, kept, request)
        return lambda: npy(as_dtype(every_map(maps, services.bundle.manifest), dtype))

    recipe = ("maps", id, services.bundle.digest, dtype)
    return await draw_unless_known(request, services.drawings, recipe=recipe, formats=NPY, render=render, format=None)


@router.get(
    "/attention/{id}/embedding", summary="Get the embedding of an image", responses=ANSWERS, response_class=Response
)
async def embedding(request: Request, id: str) -> Response:
    """The vector (features,) of POST /embed for one image of an earlier request."""
    services = services_of(request)
    kept = await services.kept(id, request)

    async def render(kind: Format) -> Callable[[], bytes]:
        outputs = await services.run("classify", kept, request)
        return partial(npy, outputs["embedding"].astype("f4"))

    recipe = ("embedding", id, services.bundle.digest)
    return await draw_unless_known(request, services.drawings, recipe=recipe, formats=NPY, render=render, format=None)


@router.get(
    "/attention/{id}/image",
    summary="Get the image that maps are drawn on",
    responses=problems(404) | {200: {"content": {"image/jpeg": FILE, **ANY_FILE}}},
    response_class=Response,
)
async def image(
    request: Request,
    id: str,
    part: Annotated[Literal["all", "seen"], Query(description="`seen`: what the network saw, in its pixels")] = "all",
) -> Response:
    """A JPEG of the upright image, at most 640 pixels wide and high."""
    services = services_of(request)
    kept = await services.kept(id, request)
    body = kept.image.thumbnail
    if part == "seen":
        body = await services.drawings.draw(
            partial(jpeg, kept.image.pixels), deadline=RequestState.of(request.scope).deadline
        )
    headers = {"Cache-Control": "private, max-age=3600"}
    return Response(body, media_type="image/jpeg", headers=headers)
