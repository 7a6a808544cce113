"""GET /attention/{id}/wall: every head of every layer on one sheet."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import Query, Request, Response

from app.api.render import Format, draw_unless_known, npy, representations
from app.api.results import ImageAnswer
from app.api.route import CheckedRouter
from app.api.services import services_of
from app.drawing.colors import Colormap, Limits, Scale, limits
from app.drawing.heatmap import Interpolation, Style
from app.drawing.wall import draw_wall, lay_out
from app.errors import InvalidParameter
from app.http.problems import problems
from app.maps.attention_map import Method
from app.maps.heads import every_head


class WallResponse(ImageAnswer):
    """Where each head's map lies on a wall: layer l and head h at origin + (h, l) * (cell + gap), in pixels."""

    layers: int
    heads: int
    grid: tuple[int, int]  # rows, columns of each map
    origin: tuple[int, int]  # left, top
    cell: tuple[int, int]  # width, height
    gap: int
    size: tuple[int, int]  # width, height of the sheet without a colour bar
    min: float  # of all maps
    max: float
    scale: Scale
    limits: tuple[float, float]  # the numbers of the first and the last colour, by this scale
    beyond: int  # patches of all maps whose numbers lie beyond these


router = CheckedRouter(tags=["maps"])


@router.get(
    "/attention/{id}/wall",
    summary="Draw the maps of all heads on one sheet",
    responses=problems(404, 422) | representations("png", "json", "npy"),
    response_class=Response,
)
async def wall(
    request: Request,
    id: str,
    method: Annotated[
        Method, Query(description="Must be class_token: no other method has a map per head")
    ] = "class_token",
    overlay: Annotated[bool, Query(description="Draw each map over what the network saw")] = False,
    alpha: Annotated[float, Query(ge=0, le=1, description="Opacity of the maps over the image")] = 0.6,
    colormap: Colormap = "viridis",
    interpolation: Annotated[Interpolation, Query(description="nearest shows each patch as a square")] = "nearest",
    colorbar: Annotated[bool, Query(description="Draw a colour bar with the raw numbers at the right")] = False,
    scale: Annotated[Scale, Query(description="Which numbers get the first and the last colour")] = "robust",
    format: Annotated[Format | None, Query(description="Overrides the Accept header")] = None,
) -> Response:
    """Return the maps of all layers (down) and heads (across) on one scale: as PNG, as a NumPy array, or the layout."""
    services = services_of(request)
    if method != "class_token":
        raise InvalidParameter(f"A wall shows the maps of single heads, and {method} has none: use class_token.")
    kept = await services.kept(id, request)
    style = Style(overlay=overlay, alpha=alpha, colormap=colormap, interpolation=interpolation, colorbar=colorbar)

    async def render(kind: Format) -> Callable[[], bytes]:
        maps = every_head(await services.maps(id, kept, request), services.bundle.manifest)
        layers, heads, rows, columns = maps.shape

        def ends() -> Limits:
            return limits(maps, maps, scale, signed=False)

        def as_json() -> bytes:
            colors = ends()
            sheet = lay_out(layers, heads, (rows, columns))
            answer = WallResponse(
                id=id,
                model=services.model_name,
                layers=layers,
                heads=heads,
                grid=(rows, columns),
                min=float(maps.min()),
                max=float(maps.max()),
                scale=scale,
                limits=colors,
                beyond=colors.beyond(maps),
                **sheet._asdict(),
            )
            return answer.model_dump_json().encode()

        renderers: dict[Format, Callable[[], bytes]] = {
            "png": lambda: draw_wall(maps, kept.image, style, ends()),
            "json": as_json,
            "npy": partial(npy, maps),
        }
        return renderers[kind]

    recipe = ("wall", id, services.bundle.digest, style, scale)
    return await draw_unless_known(
        request, services.drawings, recipe=recipe, formats=("png", "json", "npy"), render=render, format=format
    )
