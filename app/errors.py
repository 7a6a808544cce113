"""Everything that can go wrong for a caller, as one tree, and how each kind is told over HTTP.

    ServiceError
    ├── MalformedRequest      400   the HTTP message or its body cannot be taken apart
    ├── Unauthorized          401   no API key, or a wrong one
    ├── NotFound              404   no such path at this port
    ├── UnknownAttention      404   no maps under that id: unknown, expired or malformed, all the same
    ├── UnknownPicture        404   the model has no picture of itself under that name
    ├── SlowRequest           408   the request did not arrive in time
    ├── BodyTooLarge          413   too many bytes
    ├── UnsupportedType       415   not one of the accepted image types
    ├── UnsupportedEncoding   415   a compressed body
    ├── UnusableImage         422   an accepted type that cannot be decoded or is over a limit
    ├── InvalidParameter      422   a query parameter out of range
    ├── HeaderTooLarge        431   too many header fields, or too many bytes of them
    ├── InferenceFailed       500   the model gives no usable numbers for this image
    ├── Overloaded            503   the service is full; carries Retry-After, as do those below
    ├── DeadlineExceeded      503   the answer was not ready in time
    ├── Unavailable           503   the service is stopping, or has failed and is about to be restarted
    └── StoreUnavailable      503   the maps may exist, but their store does not answer

Every answer that is an error is RFC 9457 `application/problem+json`, those of the framework included.
A detail never repeats exception texts, paths or bytes of the user.
"""

import random
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

PROBLEM_TYPE = "application/problem+json"
NAMESPACE = "urn:vit-serve:problem:"
RETRY_AFTER_S = (1, 3)  # drawn at random, so that refused clients do not come back together


class ServiceError(Exception):
    """A failure with a public explanation; the classes below fix its status and kind."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR
    kind = "internal"
    title = "The service failed"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    @property
    def headers(self) -> dict[str, str]:
        if self.status == HTTPStatus.SERVICE_UNAVAILABLE:
            return {"Retry-After": str(random.randint(*RETRY_AFTER_S))}
        return {}


class MalformedRequest(ServiceError):
    status, kind, title = HTTPStatus.BAD_REQUEST, "malformed-request", "The request cannot be understood"


class Unauthorized(ServiceError):
    status, kind, title = HTTPStatus.UNAUTHORIZED, "unauthorized", "An API key is needed"

    @property
    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": "Bearer"}


class NotFound(ServiceError):
    status, kind, title = HTTPStatus.NOT_FOUND, "not-found", "Not Found"


class UnknownAttention(ServiceError):
    status, kind, title = HTTPStatus.NOT_FOUND, "unknown-attention", "No attention maps under this id"

    def __init__(self) -> None:
        super().__init__("The id is unknown or its maps have expired. POST the picture to /classify to get a new one.")


class UnknownPicture(ServiceError):
    status, kind, title = HTTPStatus.NOT_FOUND, "unknown-picture", "The model has no such picture of itself"

    def __init__(self, known: Iterable[str]) -> None:
        super().__init__(f"This model's pictures are: {', '.join(known) or 'none'}.")


class SlowRequest(ServiceError):
    status, kind, title = HTTPStatus.REQUEST_TIMEOUT, "slow-request", "The request did not arrive in time"


class BodyTooLarge(ServiceError):
    status, kind, title = HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large", "The request has too many bytes"


class UnsupportedType(ServiceError):
    status, kind, title = HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported-type", "Not an accepted image type"


class UnsupportedEncoding(ServiceError):
    status, kind, title = HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported-encoding", "Not an accepted content encoding"

    @property
    def headers(self) -> dict[str, str]:
        return {"Accept-Encoding": "identity"}  # RFC 9110, 12.5.3


class UnusableImage(ServiceError):
    status, kind, title = HTTPStatus.UNPROCESSABLE_ENTITY, "unusable-image", "The image cannot be used"


class InvalidParameter(ServiceError):
    status, kind, title = HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-parameter", "A parameter is out of range"


class HeaderTooLarge(ServiceError):
    status, kind, title = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "header-too-large", "The header is too large"


class InferenceFailed(ServiceError):
    status, kind, title = HTTPStatus.INTERNAL_SERVER_ERROR, "inference-failed", "The model failed on this image"

    def __init__(self) -> None:
        super().__init__("The model gives no usable numbers for this image; other images are not affected.")


class Overloaded(ServiceError):
    status, kind, title = HTTPStatus.SERVICE_UNAVAILABLE, "overloaded", "The service cannot take more work now"


class DeadlineExceeded(ServiceError):
    status, kind, title = HTTPStatus.SERVICE_UNAVAILABLE, "deadline-exceeded", "The answer was not ready in time"

    def __init__(self) -> None:
        super().__init__("The time for this request ran out before it was answered. Send it again in a moment.")


class Unavailable(ServiceError):
    status, kind, title = HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", "The service is stopping or has failed"


class StoreUnavailable(ServiceError):
    status, kind, title = HTTPStatus.SERVICE_UNAVAILABLE, "store-unavailable", "The store of attention maps is down"

    def __init__(self) -> None:
        super().__init__("Attention maps cannot be fetched now. Send this request again in a moment.")


class Problem(BaseModel):
    """The one shape of an error (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None  # urn:request: and the X-Request-ID of the answer; of the answer's own problem alone


def problem_of(error: ServiceError) -> Problem:
    return Problem(type=NAMESPACE + error.kind, title=error.title, status=error.status, detail=error.detail)


def framework_problem(status: int, detail: str) -> Problem:
    """The problem for a failure that the framework found: its kind is the name of the status."""
    phrase = HTTPStatus(status).phrase
    kind = phrase.lower().replace(" ", "-")
    return Problem(type=NAMESPACE + kind, title=phrase, status=status, detail=detail)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of a path that can answer with these."""
    return {status: {"model": Problem, "content": {PROBLEM_TYPE: {}}} for status in statuses}


def respond(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    return Response(
        problem.model_dump_json(exclude_none=True),
        status_code=problem.status,
        media_type=PROBLEM_TYPE,
        headers=headers or {},
    )


def failure() -> Response:
    """For a fault of ours: it tells nothing."""
    return respond(framework_problem(500, "This is a fault of the service, not of the request."))


def install_handlers(app: FastAPI) -> None:
    """Give every failure that the framework finds the one shape; of those it does not expect the door takes care."""

    @app.exception_handler(ServiceError)
    async def service_error(request: Request, error: ServiceError) -> Response:
        return respond(problem_of(error), error.headers)

    @app.exception_handler(HTTPException)
    async def http_exception(request: Request, error: HTTPException) -> Response:
        details = {404: "There is nothing at this path.", 405: "This path does not take this method."}
        detail = details.get(error.status_code, "The request was refused.")
        return respond(framework_problem(error.status_code, detail), dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def validation_error(request: Request, error: RequestValidationError) -> Response:
        errors = [{"parameter": str(e["loc"][-1]), "detail": e["msg"]} for e in error.errors()]
        detail = "; ".join(f"{e['parameter']}: {e['detail']}" for e in errors) + "."
        return respond(problem_of(InvalidParameter(detail)).model_copy(update={"errors": errors}))
