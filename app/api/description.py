"""GET /openapi.json and GET /docs: what FastAPI says of the calls, made easier to read, and what it cannot know."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from app.api.render import BINARY

BEARER = "HTTPBearer"
STAR = (  # a small PNG of a star, for the example in /docs
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgAQAAAABbAUdZAAAAWUlEQVR42m2NwQ2AIBRDH5UEj47gJuBmjMYIjsAIng3heyBw8p1ek6aFQUZDXBkmxDROh"
    "F9xPyCaNVVoBLOqBlUdygbxEqXPctJaYX70iHgr8ATk7pY9iV8+sh0WXCRmr8sAAAAASUVORK5CYII="
)


def described(describe: Callable[[], dict[str, Any]], *, with_keys: bool) -> dict[str, Any]:
    """What `describe` returns, without null in the parameters. `with_keys` every call says how a key is sent: the guard
    checks it.
    """
    description = describe()
    calls = [call for methods in description["paths"].values() for call in methods.values()]
    if with_keys:
        description["components"]["securitySchemes"] = {BEARER: {"type": "http", "scheme": "bearer"}}
        for call in calls:
            call["security"] = [{BEARER: []}]
    for parameter in (parameter for call in calls for parameter in call.get("parameters", ())):
        _not_null(parameter["schema"])
    return description


def image_request(parameters: type[BaseModel]) -> dict[str, Any]:
    """Of OpenAPI: a query with these parameters, and a body. An image that is the body may be called by any type, and
    generators know this one.

    Parameters in a body have no default: generated clients would send it, beside that of the query.
    """
    fields = parameters.model_json_schema()["properties"]
    members = {
        name: _not_null({key: value for key, value in schema.items() if key != "default"})
        for name, schema in fields.items()
    }
    return {
        "parameters": [
            {
                "name": name,
                "in": "query",
                "required": False,
                "schema": members[name] | ({} if schema["default"] is None else {"default": schema["default"]}),
                "description": schema["description"],
            }
            for name, schema in fields.items()
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/octet-stream": {"schema": BINARY},
                "multipart/form-data": {
                    "schema": {
                        "title": "ImageForm",
                        "type": "object",
                        "properties": {"image": {"type": "array", "items": BINARY}, **members},
                        "required": ["image"],
                    }
                },
                "application/json": {"schema": _images_in_json(members, title=parameters.__name__)},
            },
        },
    }


def _images_in_json(parameters: dict[str, Any], *, title: str) -> dict[str, Any]:
    """The schema: images under the first of their names, and those of parameters under `title`."""
    return {
        "title": "ImagesInJson",
        "type": "object",
        "properties": {
            "inputs": {
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                "description": "base64 of an image file, or a list of such",
            },
            "parameters": {"title": title, "type": "object", "properties": parameters},
        },
        "required": ["inputs"],
        "example": {"inputs": STAR},
    }


def _not_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter: one that may be missing is never sent as null."""
    options = [option for option in schema.pop("anyOf", ()) if option != {"type": "null"}]
    schema |= {"anyOf": options} if len(options) > 1 else dict(*options)
    return schema
