"""The HTTP surface: every path of the service, and nothing else."""

import asyncio
import hashlib
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse

from app.attention import Method, choose
from app.errors import Problem, ServiceError, UnknownAttention, problem_of, respond
from app.heatmap import Colormap, Interpolation, Style
from app.representation import MEDIA_TYPES, RENDERERS, Format, View, preferred_format
from app.schemas import (
    BatchLatency,
    ClassifyResponse,
    FailedResult,
    ImageInfo,
    ModelName,
    ModelResponse,
    Result,
)
from app.services import Services
from app.uploads import read_images

PAGE = Path(__file__).parent / "page.html"
IMAGE_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "image/*": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {"image": {"type": "array", "items": {"type": "string", "format": "binary"}}},
                }
            },
        },
    }
}
HOW_TO_ASK = {
    "how": "POST a picture to /classify; its answer has an id. Then GET /attention/{id} for the map as a picture.",
    "parameters": "method, layer, head, overlay, alpha, colormap, interpolation, format (png, json, npy); see /docs",
}

PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'"
T = TypeVar("T")

router = APIRouter()


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


Parts = Annotated[Services, Depends(_services)]


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Problem, "content": {"application/problem+json": {}}} for status in statuses}


@router.post(
    "/classify",
    response_model=ClassifyResponse,
    response_model_exclude_none=True,
    openapi_extra=IMAGE_BODY,
    responses=_problems(400, 413, 415, 422, 503),
)
async def classify(
    request: Request,
    parts: Parts,
    top_k: Annotated[int, Query(ge=1, description="Labels to return; fewer where the model has fewer")] = 5,
    attention: Annotated[bool, Query(description="Keep the attention maps for GET /attention/{id}")] = True,
) -> Response:
    """Name what is in one or more images. Repeating a request is harmless: the same scores, another id."""
    settings = parts.settings
    images = await read_images(request, max_bytes=settings.max_upload_bytes, max_images=settings.max_images_per_request)
    with parts.batcher.admit(len(images)):
        work = [_classify_one(parts, data, top_k=top_k, attention=attention) for data in images]
        outcomes = await _unless_gone(request, asyncio.gather(*work))
    if outcomes is None:
        return Response(status_code=499)  # nobody reads it
    failures = [outcome for outcome in outcomes if isinstance(outcome, ServiceError)]
    if len(failures) == len(outcomes):
        return _all_failed(failures)
    results = [FailedResult(error=problem_of(o)) if isinstance(o, ServiceError) else o for o in outcomes]
    answer = ClassifyResponse(model=_model_name(parts), results=results)
    return Response(answer.model_dump_json(exclude_none=True), media_type="application/json")


async def _classify_one(parts: Services, data: bytes, *, top_k: int, attention: bool) -> Result | ServiceError:
    try:
        done = await parts.classifier.classify(data, top_k=top_k, attention=attention)
    except ServiceError as error:
        return error
    return Result(
        id=done.id,
        predictions=done.predictions,
        attention=f"/attention/{done.id}" if done.id else None,
        image=ImageInfo(width=done.width, height=done.height, format=done.format),
    )


def _all_failed(failures: list[ServiceError]) -> Response:
    """One failure speaks for itself; several are listed under the status that most of them share."""
    statuses = [failure.status for failure in failures]
    first = failures[statuses.index(max(statuses, key=statuses.count))]
    problem = problem_of(first)
    if len(failures) > 1:
        errors = [{"pointer": f"/images/{i}", **problem_of(f).model_dump()} for i, f in enumerate(failures)]
        problem = problem.model_copy(update={"detail": "None of the images can be used.", "errors": errors})
    return respond(problem, first.headers)


async def _unless_gone(request: Request, work: asyncio.Future[list[T]]) -> list[T] | None:
    """What `work` gives, or None, with the work cancelled, when the client hangs up first."""
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        gone.cancel()
        work.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _model_name(parts: Services) -> ModelName:
    return ModelName(name=parts.bundle.manifest.name, digest=parts.bundle.digest)


async def _style(
    overlay: Annotated[bool, Query(description="Lay the map over the picture")] = True,
    alpha: Annotated[float, Query(ge=0, le=1, description="Opacity of the map on the picture")] = 0.6,
    colormap: Colormap = "viridis",
    interpolation: Annotated[Interpolation, Query(description="nearest shows the patches as they are")] = "bilinear",
) -> Style:
    return Style(overlay=overlay, alpha=alpha, colormap=colormap, interpolation=interpolation)


@router.get("/attention", responses=_problems(404, 422), summary="The same, by ?id=")
@router.get("/attention/{id}", responses=_problems(404, 422))
async def attention(
    parts: Parts,
    style: Annotated[Style, Depends(_style)],
    id: str = "",
    method: Annotated[Method, Query(description="class_token: one row; rollout: through all layers")] = "class_token",
    layer: Annotated[str | None, Query(description="0 to L-1, negative from the end, or mean; the last")] = None,
    head: Annotated[str, Query(description="0 to H-1, mean, max or min")] = "mean",
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
    chosen = choose(record, parts.bundle.manifest, method=method, layer=layer, head=head)
    kind = format or preferred_format(accept)
    recipe = (id, parts.bundle.digest, chosen.method, chosen.layer, chosen.head, kind, style)
    etag = f'"{hashlib.sha256(repr(recipe).encode()).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "private, max-age=3600", "Vary": "Accept"}
    if etag in if_none_match:
        return Response(status_code=304, headers=headers)
    view = View(id=id, model=_model_name(parts), record=record, map=chosen, style=style)
    body = await asyncio.get_running_loop().run_in_executor(parts.cpu_pool, RENDERERS[kind], view)
    return Response(body, media_type=MEDIA_TYPES[kind], headers=headers)


@router.get("/model")
async def model(parts: Parts) -> ModelResponse:
    """What is served, on what, and how fast it was at warm-up."""
    return ModelResponse(
        name=parts.bundle.manifest.name,
        digest=parts.bundle.digest,
        manifest=parts.bundle.manifest,
        provider=parts.provider,
        max_batch=parts.settings.max_batch,
        latency=[BatchLatency(**latency._asdict()) for latency in parts.latency],
    )


@router.head("/livez", include_in_schema=False)
@router.get("/livez")
async def livez() -> dict[str, str]:
    """The process is alive."""
    return {"status": "alive"}


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz")
async def readyz() -> dict[str, str]:
    """The model is loaded and warm: before that, nothing listens."""
    return {"status": "ready"}


@router.get("/", include_in_schema=False)
async def page() -> Response:
    """What this is, for a person who opens it in a browser."""
    return FileResponse(PAGE, media_type="text/html", headers={"Content-Security-Policy": PAGE_POLICY})
