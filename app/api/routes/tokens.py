"""GET /attention/{id}/tokens: the tokens of an image that was kept."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import Query, Request, Response

from app.api.render import Format, draw_unless_known, representations
from app.api.route import CheckedRouter
from app.api.services import services_of
from app.api.tokens import TokenParameters, check_accepted, packed
from app.http.problems import problems
from app.inference.tokens import array_for

router = CheckedRouter(tags=["maps"])


@router.get(
    "/attention/{id}/tokens",
    summary="Get the tokens of an image",
    responses=problems(404, 406, 422) | representations("npy"),
    response_class=Response,
)
async def tokens(request: Request, id: str, parameters: Annotated[TokenParameters, Query()]) -> Response:
    """The array of POST /embed for one image of an earlier request, as a NumPy array."""
    services = services_of(request)
    manifest = services.bundle.manifest
    array = array_for(manifest, parameters.layer)
    check_accepted(request)
    kept = await services.kept(id, request)

    async def render(kind: Format) -> Callable[[], bytes]:
        outputs = await services.run("tokens", kept, request)
        return partial(packed, [outputs[array]], manifest, parameters.tokens, parameters.dtype)

    formats: tuple[Format, ...] = ("npy",)
    recipe = ("tokens", id, services.bundle.digest, parameters)
    return await draw_unless_known(
        request, services.drawings, recipe=recipe, formats=formats, render=render, format=None
    )
