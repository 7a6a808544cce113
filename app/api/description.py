"""The OpenAPI description, as code generators need it.

FastAPI describes an error as `application/json` beside the type that is really sent, and generators take the first. It
knows nothing of what the door and the protocol below it answer.
"""

from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from app.api.problems import PROBLEM_TYPE, Problem
from app.api.representation import MEDIA_TYPES

PROBLEM = {"$ref": f"#/components/schemas/{Problem.__name__}"}
EVERYWHERE = {
    "401": "The request needs an API key, where the server has keys",
    "431": "The header is too large",
    "500": "The service failed",
    "503": "The service is busy, stopping or has failed",
}
WITH_A_BODY = {"408": "The request did not arrive in time", "413": "The request has too many bytes"}


def operation_id(route: APIRoute) -> str:
    """The function's name: generators name their functions after it."""
    return route.name


def describe(app: FastAPI) -> None:
    """Complete the description that `app` gives, once it has all of its routes."""
    of_framework = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            description = of_framework()
            for methods in description["paths"].values():
                for call in methods.values():
                    _complete(call)
        return of_framework()

    app.openapi = openapi  # type: ignore[method-assign]


def _complete(call: dict[str, Any]) -> None:
    responses = call["responses"]
    known = EVERYWHERE | (WITH_A_BODY if "requestBody" in call else {})
    for status, said in known.items():
        responses.setdefault(status, {"description": said, "content": {PROBLEM_TYPE: {}}})
    for response in responses.values():
        content = response.get("content", {})
        if PROBLEM_TYPE in content:
            response["content"] = {PROBLEM_TYPE: {"schema": PROBLEM}}
        elif MEDIA_TYPES["png"] in content:  # generators would read JSON from a PNG
            response["content"] = {kind: {} for kind in content}
