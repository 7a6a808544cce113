"""The one shape of an error over HTTP: RFC 9457, `application/problem+json`, for the framework's own errors too."""

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, computed_field
from pydantic.config import JsonDict
from pydantic.json_schema import SkipJsonSchema
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route
from starlette.types import Scope

from app.errors import NAMESPACE, InvalidParameter, ServiceError
from app.telemetry.request_state import RequestState

PROBLEM_TYPE = "application/problem+json"
EVERYWHERE = (401, 422, 431, 500, 503)  # statuses of the guard and the protocol below it, whatever the path
MEANINGS = {
    400: "The request cannot be understood",
    401: "The request needs an API key, where the server has keys",
    404: "There is nothing with this id or name",
    406: "The answer does not have the form that `Accept` asks for",
    408: "The request did not arrive in time",
    409: "The model has no classes",
    413: "The request has too many bytes",
    415: "The image type is not accepted",
    422: "The image cannot be used, or a parameter is unknown or out of range",
    431: "The header is too large",
    500: "The service failed",
    503: "The service is busy, stopping or has failed: repeat the request after `Retry-After` seconds",
}
EXAMPLE: JsonDict = {
    "type": f"{NAMESPACE}unusable-image",
    "title": "The image cannot be used",
    "status": 422,
    "detail": "This looks like JPEG but cannot be decoded.",
    "instance": "urn:request:6b0f6e9e8f5d4b0c",
    "error": "This looks like JPEG but cannot be decoded.",
}


class Problem(BaseModel):
    """The one shape of an error (RFC 9457)."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [EXAMPLE]})

    type: str
    title: str
    status: int
    detail: str
    instance: str | SkipJsonSchema[None] = (
        None  # urn:request: and the X-Request-ID of the response; None inside a list of results
    )

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorator above a property
    @property
    def error(self) -> str:
        """The detail again: clients of Triton and Hugging Face read nothing else."""
        return self.detail


def problem_of(error: ServiceError) -> Problem:
    """A member that is None is left out of the answer."""
    return Problem.model_validate({**error.problem, **error.members})


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The one entry of OpenAPI for all errors of a path that can answer with these statuses beside those of EVERYWHERE.

    The schema is named, not given as a model: FastAPI would describe a model as `application/json`, which is never
    sent, and generators take the first type that they know. It is among the components as a part of FailedResult.
    """
    listed = "\n".join(f"- {status}: {MEANINGS[status]}" for status in sorted({*EVERYWHERE, *statuses}))
    content = {PROBLEM_TYPE: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}
    return {"default": {"description": f"Every error has one shape.\n\n{listed}", "content": content}}


def respond(problem: Problem, state: RequestState, headers: Mapping[str, str] | None) -> Response:
    """The response for `problem`. The request's id becomes `instance` in the body, and the problem's kind is left in
    `state`, for metrics and the log.
    """
    state.problem = problem.type.removeprefix(NAMESPACE)
    named = problem.model_copy(update={"instance": f"urn:request:{state.request_id}"})
    return Response(
        named.model_dump_json(exclude_none=True),
        status_code=problem.status,
        media_type=PROBLEM_TYPE,
        headers=headers,
    )


def respond_to(error: ServiceError, state: RequestState) -> Response:
    return respond(problem_of(error), state, error.headers)


def install_handlers(app: FastAPI, *, routes: Sequence[Route]) -> None:
    """Give every error of the framework the one shape. The guard answers a ServiceError wherever it is raised."""

    @app.exception_handler(HTTPException)
    async def http_exception(request: Request, error: HTTPException) -> Response:
        details = {404: "There is nothing at this path.", 405: "This path does not take this method."}
        detail = details.get(error.status_code, "The request was refused.")
        phrase = HTTPStatus(error.status_code).phrase
        kind = NAMESPACE + phrase.lower().replace(" ", "-")
        problem = Problem(type=kind, title=phrase, status=error.status_code, detail=detail)
        headers = error.headers
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            headers = {"Allow": _allowed(routes, request.scope)}
        return respond(problem, RequestState.of(request.scope), headers)

    @app.exception_handler(RequestValidationError)
    async def validation_error(request: Request, error: RequestValidationError) -> Response:
        found: dict[str, str] = {}
        for e in error.errors():  # pydantic judges each item of a list by its place, and then what is left of the list
            found.setdefault([part for part in e["loc"] if isinstance(part, str)][-1], e["msg"])
        errors = [{"parameter": name, "detail": message} for name, message in found.items()]
        detail = "; ".join(f"{name}: {message}" for name, message in found.items()) + "."
        return respond_to(InvalidParameter(detail).saying(errors=errors), RequestState.of(request.scope))


def _allowed(routes: Iterable[Route], scope: Scope) -> str:
    """The methods of a path. Several routes may share it, and the framework names those of the first alone."""
    methods = {method for route in routes if route.matches(scope)[0] != Match.NONE for method in route.methods or ()}
    methods |= {"HEAD"} if "GET" in methods else set()
    return ", ".join(sorted(methods)) or "GET, HEAD"  # of a folder of files, which is not a route
