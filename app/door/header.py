"""What the header of a request says of its id and its deadline."""

import math
import re
import secrets
import time

from starlette.requests import HTTPConnection

from app.errors import InvalidParameter

REQUEST_ID = "X-Request-ID"
MODEL_DIGEST = "X-Model-Digest"
TIMEOUT = "X-Request-Timeout"
_PLAIN_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def request_id(request: HTTPConnection) -> str:
    """The client's X-Request-ID if it is plain, else a new id. A plain id cannot forge lines in a log."""
    given = request.headers.get(REQUEST_ID, "")
    return given if _PLAIN_ID.fullmatch(given) else secrets.token_hex(16)


def deadline(request: HTTPConnection, *, max_s: float) -> float:
    """When the answer has to be ready: X-Request-Timeout seconds from now, at most `max_s`.

    In seconds of `time.monotonic()`. Raises InvalidParameter.
    """
    value = request.headers.get(TIMEOUT)
    try:
        seconds = max_s if value is None else float(value)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise InvalidParameter(f"{TIMEOUT} must be a number of seconds greater than 0.")
    return time.monotonic() + min(seconds, max_s)
