"""GET /model and GET /model/inspect: the model that is served, and its pictures of itself, made at export."""

from collections.abc import Callable
from typing import Annotated, get_args

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from app.api.render import Format, draw_unless_known, representations
from app.api.route import CheckedRouter
from app.api.services import services_of
from app.bundle import (
    PICTURE_FORMATS,
    Graph,
    HeldOut,
    KnownAnswer,
    KnownText,
    Manifest,
    PictureFormat,
    Precision,
    picture_file,
)
from app.errors import UnknownPicture
from app.http.problems import problems
from app.inference.model import BatchLatency
from app.maps.judgement import Judgement


class PublicManifest(Manifest):
    """The manifest without the numbers of the known answers, of the held-out images and of the mean."""

    known_answer: KnownAnswer = Field(exclude=True)
    known_text: KnownText | None = Field(exclude=True)
    held_out: HeldOut | None = Field(exclude=True)
    mean: tuple[float, ...] = Field(exclude=True)


class ModelResponse(BaseModel):
    name: str
    digest: str
    manifest: PublicManifest
    provider: str  # what really runs the model: OpenVINO, or an execution provider of ONNX Runtime
    computes_in: Precision  # the numbers in which the blocks are really computed
    least_familiarity: float  # of this process: an image below it is unfamiliar
    best_batch: dict[Graph, int]  # largest number of images run at once, by graph
    latency: list[BatchLatency]
    deviation: dict[Graph, float]  # largest difference from the known answer so far, as a share of what is allowed
    judged: Judgement | None  # how faithful each map was on somebody's images, where that was measured


class ModelPicture(BaseModel):
    """One of the model's own pictures."""

    name: str
    title: str
    png: str
    numbers: str = Field(alias="json")


class ModelPicturesResponse(BaseModel):
    pictures: list[ModelPicture]


router = CheckedRouter(tags=["model"])


@router.get("/model", summary="Describe the model")
async def model(request: Request) -> ModelResponse:
    """Return the served model, the device in use, and the latency measured so far."""
    services = services_of(request)
    model = services.model
    return ModelResponse(
        name=services.bundle.manifest.name,
        digest=services.bundle.digest,
        manifest=PublicManifest.model_construct(**dict(services.bundle.manifest)),
        provider=model.engine.provider,
        computes_in=model.engine.computes_in,
        least_familiarity=services.settings.least_familiarity,
        best_batch={graph: model.best_batch(graph) for graph in get_args(Graph)},
        latency=model.latency(),
        deviation=model.known.largest,
        judged=services.judged,
    )


@router.get("/model/inspect", summary="List the pictures of the model")
async def pictures(request: Request) -> ModelPicturesResponse:
    """List the pictures of the model itself and their addresses."""
    services = services_of(request)
    folder = f"{services.settings.root_path}/model/inspect"
    return ModelPicturesResponse(
        pictures=[
            ModelPicture(name=name, title=title, **{kind: f"{folder}/{name}?format={kind}" for kind in PICTURE_FORMATS})
            for name, title in services.bundle.manifest.inspect.items()
        ]
    )


@router.get(
    "/model/inspect/{name}",
    summary="Get a picture of the model, or its numbers",
    responses=problems(404, 422) | representations("png", "json"),
    response_class=Response,
)
async def picture(
    request: Request,
    name: str,
    format: Annotated[PictureFormat | None, Query(description="Overrides the Accept header")] = None,
) -> Response:
    """Return a picture of the model itself, or its numbers: filters, positions, attention distance."""
    services = services_of(request)
    bundle = services.bundle
    if name not in bundle.manifest.inspect:
        raise UnknownPicture(bundle.manifest.inspect)

    async def render(kind: Format) -> Callable[[], bytes]:
        assert kind != "npy"
        return (bundle.folder / picture_file(name, kind)).read_bytes

    return await draw_unless_known(
        request,
        services.drawings,
        recipe=(bundle.digest, name),
        formats=PICTURE_FORMATS,
        render=render,
        format=format,
        max_age_s=0,  # its address does not say which model it is of
    )
