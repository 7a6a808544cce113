"""The name of a request, in its answer, its problem and every line that is logged about it."""

import re
import secrets

from starlette.requests import HTTPConnection

HEADER = "X-Request-ID"
_ACCEPTED = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def request_id(request: HTTPConnection) -> str:
    """The client's X-Request-ID if it is plain, else a new one: nobody can write lines into a log through it."""
    given = request.headers.get(HEADER, "")
    return given if _ACCEPTED.fullmatch(given) else secrets.token_hex(16)
