"""The names of parameters: a request gives only those that its path takes, and each once, in its query or its body."""

import json
import re
from collections.abc import Collection, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from app.errors import InvalidParameter, MalformedRequest, is_meant
from app.maps.choice import Choice
from app.maps.occlusion import Fill

ChoiceQuery = Annotated[Choice, Query()]  # the map that the query asks for
FillQuery = Annotated[
    Fill, Query(description="What covers a patch: the mean colour, black, grey, or a Gaussian blur one patch wide")
]
Given = Sequence[tuple[str, str]]  # names and values in their order; a name may be there twice
P = TypeVar("P", bound=BaseModel)
_REPEATED = re.compile(r"[\w.-]{1,64}", re.ASCII)  # the names that an answer repeats
_NOTHING = (b"", b"{}", b"null")  # which axios.post sends for a request without a body


async def refuse_body(request: Request) -> None:
    """For a POST that reads its parameters from its query alone. Raises MalformedRequest."""
    if (await request.body()).strip() not in _NOTHING:
        raise MalformedRequest(f"{_call(request)} takes no body: its parameters stand in the query.")


def read(kind: type[P], given: Given) -> P:
    """Parameters from what a query and a body give, as text. Raises RequestValidationError, as FastAPI does."""
    try:
        return kind.model_validate(dict(given))
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from None


def as_text(value: object) -> str:
    """A value of JSON as it would stand in a query. Raises MalformedRequest for a large one, which is set aside."""
    try:
        return value if isinstance(value, str) else json.dumps(value)
    except TypeError:
        raise MalformedRequest("A parameter in the JSON is too long.") from None


def check_names(given: Sequence[str], known: Collection[str], request: Request) -> None:
    """Raises InvalidParameter for a name that is not known, or is there twice."""
    for name in given:
        if name not in known:
            raise refused(name, unknown(name, known, of=_call(request)))
        if given.count(name) > 1:
            raise refused(name, f"{name} is given {given.count(name)} times: give it once.")


def unknown(name: str, known: Collection[str], *, of: str, kind: str = "parameter") -> str:
    """The sentence for a name that `of` does not take."""
    named = name if _REPEATED.fullmatch(name) else "A name in this request"
    takes = f", which takes {', '.join(known) or 'none'}."
    return f"{named} is not a {kind} of {of}{is_meant(name, known) or takes}"


def refused(name: str, detail: str) -> InvalidParameter:
    errors: list[dict[str, Any]] = [{"parameter": name[:64], "detail": detail}]
    return InvalidParameter(detail).saying(errors=errors)


def _call(request: Request) -> str:
    return f"{request.method} {request.scope['route'].path}"
