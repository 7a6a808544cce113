"""POST /attention/{id}/evidence: what patches add to the inner product of the embedding with vectors in the body."""

import asyncio
import json
from functools import partial
from io import BytesIO
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from fastapi import Query, Request, Response
from pydantic import BaseModel

from app.api.image_request import ImageRequest
from app.api.render import BINARY, MEDIA_TYPES, npy, preferred_format
from app.api.results import ImageAnswer
from app.api.route import CheckedRouter
from app.api.services import services_of
from app.errors import MalformedRequest
from app.http.problems import problems
from app.images.upload import Upload
from app.inference.digits import listed
from app.maps.attention_map import Receipt
from app.maps.choice import Choice
from app.maps.direction import Vectors, asked_for, check_directions, products

MOST = 64  # vectors in a request
MOST_JSON_BYTES = 2**21  # 64 vectors of 1,536 numbers
NO_VECTORS = "The body has to be JSON such as [[0.1, ...]], or a file of NumPy, version 1.0, with rows of floats."
MAX_HEADER_BYTES = 1000  # of a file of NumPy

router = CheckedRouter(tags=["maps"])


class OfVector(BaseModel):
    """The map for one vector, and the sum that it is a part of."""

    values: list[float]  # row by row
    receipt: Receipt


class EvidenceResponse(ImageAnswer):
    grid: tuple[int, int]  # rows, columns
    results: list[OfVector]  # in the order of the vectors


@router.post(
    "/attention/{id}/evidence",
    summary="Get the evidence of an image for vectors",
    response_model=EvidenceResponse,
    response_model_exclude_none=True,
    responses=problems(400, 404, 408, 413, 422) | {200: {"content": {MEDIA_TYPES["npy"]: {}}}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}
                },
                "application/octet-stream": {
                    "schema": BINARY
                },  # any type but JSON; generators of clients know this one
            },
        }
    },
)
async def evidence(
    request: Request, id: str, layer: Annotated[str | None, Query(description="As of a map of evidence")] = None
) -> Response | EvidenceResponse:
    """The vectors are an array (K, features) as a file of NumPy or as JSON: concepts, the weights of a probe, features
    of a sparse autoencoder. The receipt of each adds up to its inner product with the embedding.
    """
    services = services_of(request)
    manifest = services.bundle.manifest
    check_directions(manifest)
    brought = ImageRequest(request, services)
    upload = await brought.received()
    if request.headers.get("content-type", "").split(";")[0].strip().lower() == "application/json":
        vectors = await asyncio.to_thread(lambda: _checked(_from_json(upload), manifest.features))
    else:
        vectors = _checked(_from_npy(upload), manifest.features)
    kept = await services.kept(id, request)
    choice = Choice(method="evidence", layer=layer)
    shown = []
    for asked in asked_for(vectors, manifest):
        shown += products(await services.explained(id, kept, asked, request), manifest, choice, asked.directions)
    if preferred_format(request.headers.getlist("accept"), among=("json", "npy")) == "npy":
        return Response(npy(np.stack([one.values for one in shown])), media_type=MEDIA_TYPES["npy"])
    results = [
        OfVector(values=listed(one.values.ravel()), receipt=one.receipt) for one in shown if one.receipt is not None
    ]
    return EvidenceResponse(id=id, model=services.model_name, grid=manifest.tokens.grid, results=results)


def _from_json(upload: Upload) -> Any:
    """Here, and not where images are decoded: it is small. Raises MalformedRequest."""
    if len(upload) > MOST_JSON_BYTES:
        raise MalformedRequest(f"JSON has at most {MOST_JSON_BYTES:,} bytes: send a file of NumPy.")
    try:
        return json.loads(bytes(upload.read(0, len(upload))))
    except (ValueError, RecursionError):
        raise MalformedRequest(NO_VECTORS) from None


def _from_npy(upload: Upload) -> npt.NDArray[np.floating]:
    """The array, if the file has exactly as many bytes as its header says. Raises MalformedRequest."""
    content = bytes(upload.read(0, len(upload)))
    file = BytesIO(content)
    read = partial(np.lib.format.read_array_header_1_0, file, max_header_size=MAX_HEADER_BYTES)
    try:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError("another version")
        shape, in_columns, dtype = read()
        if dtype.kind != "f" or in_columns or len(shape) != 2:
            raise ValueError("no array of vectors")
        return np.frombuffer(content, dtype, offset=file.tell()).reshape(shape)
    except (ValueError, OverflowError, SyntaxError, MemoryError, RecursionError):
        raise MalformedRequest(NO_VECTORS) from None


def _checked(found: object, features: int) -> Vectors:
    """The vectors (K, features). Raises MalformedRequest unless there are 1 to MOST, of finite numbers."""
    try:
        vectors = np.asarray(found, np.float32)
    except (ValueError, TypeError, OverflowError):
        vectors = np.zeros(0, np.float32)
    if vectors.ndim != 2 or not 1 <= len(vectors) <= MOST or vectors.shape[1] != features:
        raise MalformedRequest(f"The body has to be from 1 to {MOST} vectors of {features} numbers each.")
    if not np.isfinite(vectors).all():
        raise MalformedRequest("A vector has a number that is not finite in float32.")
    return vectors
