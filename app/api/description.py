"""GET /openapi.json and GET /docs: what FastAPI says of the calls, made easier to read."""

from collections.abc import Callable
from typing import Any


def without_null(describe: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `describe` returns, with one type for each parameter."""
    description = describe()
    calls = [call for methods in description["paths"].values() for call in methods.values()]
    for parameter in (parameter for call in calls for parameter in call.get("parameters", ())):
        with_one_type(parameter["schema"])
    return description


def with_one_type(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter: one that may be missing is never sent as null."""
    for option in schema.pop("anyOf", ()):
        schema |= option if option != {"type": "null"} else {}
    return schema
