"""The names of parameters: a request gives only those that its path takes, and each once, in its query or its body."""

import json
import re
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any, TypeVar

from fastapi import Request
from fastapi.dependencies.utils import get_dependant, get_flat_params
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from app.door.paths import is_public
from app.errors import InvalidParameter, MalformedRequest, is_meant
from app.images.kinds import LOOK_BYTES, what_is

Given = Sequence[tuple[str, str]]  # names and values in their order; a name may be there twice
P = TypeVar("P", bound=BaseModel)
_REPEATED = re.compile(r"[\w.-]{1,64}", re.ASCII)  # the names that an answer repeats
_WRITTEN = ("JSON", "a form", "a form without files")  # names of kinds
_NOTHING = (b"", b"{}", b"null")  # which axios.post sends for a request without a body
_MAY_HOLD_PARAMETERS = re.compile(r"\s*(?:application/(?:\S*json|x-www-form-urlencoded)|multipart/)", re.IGNORECASE)


async def check_query(request: Request) -> None:
    """Refuses a query that names what its path does not take, on every path that needs a key.

    Probes and the page answer the same whatever the query: health checkers and caches add some. Raises
    InvalidParameter.
    """
    given, route = request.query_params.multi_items(), request.scope["route"]
    if given and not is_public(request.method, route.path):
        check_names([name for name, _ in given], _names(route.endpoint, route.path), request)
    if request.method == "GET" and not is_public(request.method, route.path):
        await refuse_body(request)


@cache
def _names(endpoint: Callable[..., object], path: str) -> list[str]:
    """The parameters that a query may give. No path takes any in a header or cookie."""
    names = [field.alias for field in get_flat_params(get_dependant(path=path, call=endpoint))]
    return [name for name in names if f"{{{name}}}" not in path]


async def refuse_body(request: Request) -> None:
    """Refuse a body with parameters, for a path that reads them from its query alone.

    Raises MalformedRequest and ClientDisconnect.
    """
    start = b""
    async for piece in request.stream():
        start += piece[: LOOK_BYTES - len(start)]
    kind = what_is(start)
    holds = _MAY_HOLD_PARAMETERS.match(request.headers.get("content-type", "")) or (kind and kind.name in _WRITTEN)
    if start.strip() not in _NOTHING and holds:
        raise MalformedRequest(f"{_call(request)} takes no body: its parameters stand in the query.")


def with_body(of_query: P, of_body: Given, request: Request) -> P:
    """The parameters of the query and of the body, which count alike.

    Raises InvalidParameter, and RequestValidationError as FastAPI does for the query.
    """
    if not of_body:
        return of_query
    kind = type(of_query)
    check_names([*of_query.model_fields_set, *(name for name, _ in of_body)], kind.model_fields, request)
    try:
        return kind.model_validate({**of_query.model_dump(exclude_unset=True), **dict(of_body)})
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from None


def as_text(value: object) -> str:
    """A value of JSON as it would stand in a query."""
    return value if isinstance(value, str) else json.dumps(value)


def check_names(given: Sequence[str], known: Collection[str], request: Request) -> None:
    """Raises InvalidParameter for a name that is not known, or is there twice."""
    for name in given:
        if name not in known:
            raise _refused(name, unknown(name, known, of=_call(request)))
        if given.count(name) > 1:
            raise _refused(name, f"{name} is given {given.count(name)} times: give it once.")


def unknown(name: str, known: Collection[str], *, of: str, kind: str = "parameter") -> str:
    """The sentence for a name that `of` does not take."""
    named = name if _REPEATED.fullmatch(name) else "A name in this request"
    takes = f", which takes {', '.join(known) or 'none'}."
    return f"{named} is not a {kind} of {of}{is_meant(name, known) or takes}"


def _refused(name: str, detail: str) -> InvalidParameter:
    errors: list[dict[str, Any]] = [{"parameter": name[:64], "detail": detail}]
    return InvalidParameter(detail).saying(errors=errors)


def _call(request: Request) -> str:
    return f"{request.method} {request.scope['route'].path}"
