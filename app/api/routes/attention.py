"""GET /attention: maps of an image that was classified before."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from app.api.conditional import draw_unless_known
from app.api.representation import Format, npy, representations
from app.api.services import ChoiceQuery, ImageAnswer, ServicesDep
from app.door.problems import problems
from app.drawing.heatmap import Style, draw
from app.drawing.scale import Scale, limits
from app.maps.choice import Choice, Chosen, Receipt, choose


class AttentionResponse(Chosen, ImageAnswer):
    """One map: how it was made, and its raw numbers."""

    grid: tuple[int, int]  # rows, columns
    values: list[float]  # row by row, unscaled
    min: float
    max: float
    limits: tuple[float, float]  # the numbers of the first and the last colour of the PNG
    sum: float
    class_token_mass: float
    distillation_mass: float
    register_mass: float
    image: tuple[int, int]  # width, height of the upright original
    receipt: Receipt | None  # of evidence
    crop_box: tuple[float, float, float, float]  # left, top, right, bottom of what the network saw, in its pixels


PARAMETERS = ", ".join([*Choice.model_fields, *Style.model_fields, "scale", "format"])

ANSWERS = problems(404, 409, 422) | representations("png", "json", "npy")

router = APIRouter(tags=["maps"])


@router.get(
    "/attention",
    operation_id="attention_by_query",
    responses=ANSWERS,
    response_class=Response,
    summary="The same with ?id=; without an id, a short help text",
)
@router.get("/attention/{id}", summary="Draw a map of an image", responses=ANSWERS, response_class=Response)
async def attention(
    request: Request,
    services: ServicesDep,
    choice: ChoiceQuery,
    style: Annotated[Style, Query()],
    id: str | None = None,
    scale: Annotated[Scale, Query(description="Which numbers get the first and the last colour")] = "min-max",
    format: Annotated[Format | None, Query(description="Overrides the Accept header")] = None,
) -> Response:
    """The image was classified before. The map is a PNG, raw numbers in JSON, or a NumPy array."""
    if id is None:
        root = services.settings.root_path
        maps = f"{root}/attention/{{id}}"
        how = f"POST an image to {root}/classify; its answer has an id. Then GET {maps} for the map as a PNG, "
        parameters = f"{PARAMETERS} (png, json, npy); see {root}/docs"
        return JSONResponse({"how": f"{how}{maps}/wall for all heads.", "parameters": parameters})
    record = await services.kept(id, request)
    shown = choose(record.maps, services.bundle.manifest, choice)
    ends = limits(shown.values, shown.siblings, scale, signed=shown.signed)

    def as_json() -> bytes:
        values, (rows, columns) = shown.values, shown.values.shape
        answer = AttentionResponse(
            id=id,
            model=services.model_name,
            **shown.chosen.model_dump(),
            grid=(rows, columns),
            values=values.ravel().tolist(),
            min=float(values.min()),
            max=float(values.max()),
            limits=ends,
            sum=float(values.sum(dtype=np.float64)),
            class_token_mass=shown.masses["class"],
            distillation_mass=shown.masses["distillation"],
            register_mass=shown.masses["register"],
            receipt=shown.receipt,
            image=record.image.size,
            crop_box=record.image.box,
        )
        return answer.model_dump_json(exclude_none=True).encode()

    renderers: dict[Format, Callable[[], bytes]] = {
        "png": partial(draw, shown.values, record.image, style, ends),
        "json": as_json,
        "npy": partial(npy, shown.values),
    }
    recipe = (id, services.bundle.digest, shown.chosen, style, scale)
    return await draw_unless_known(request, services.drawings, recipe=recipe, renderers=renderers, format=format)
