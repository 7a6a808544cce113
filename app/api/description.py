"""GET /openapi.json and GET /docs: what FastAPI says of the calls, made easier to read."""

from collections.abc import Callable
from typing import Any

BEARER = "HTTPBearer"


def described(describe: Callable[[], dict[str, Any]], *, with_keys: bool) -> dict[str, Any]:
    """What `describe` returns, without null in the parameters. `with_keys` every call says how a key is sent: the door
    checks it.
    """
    description = describe()
    calls = [call for methods in description["paths"].values() for call in methods.values()]
    if with_keys:
        description["components"]["securitySchemes"] = {BEARER: {"type": "http", "scheme": "bearer"}}
        for call in calls:
            call["security"] = [{BEARER: []}]
    for parameter in (parameter for call in calls for parameter in call.get("parameters", ())):
        not_null(parameter["schema"])
    return description


def not_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter: one that may be missing is never sent as null."""
    options = [option for option in schema.pop("anyOf", ()) if option != {"type": "null"}]
    schema |= {"anyOf": options} if len(options) > 1 else dict(*options)
    return schema
