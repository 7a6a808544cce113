"""What the header of a request decides before its body is read: its id, its deadline, whether there is room for it."""

import math
import re
import secrets
import time

from starlette.requests import HTTPConnection

from app.door.admission import Admission
from app.errors import InvalidParameter
from app.telemetry.request_state import RequestState

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


def check_room(request: HTTPConnection, state: RequestState, *, admission: Admission) -> None:
    """Refuse new images that `admission` refuses. Raises its refusal.

    A map of an image that was classified before costs little, and its client has waited once already.
    """
    if request.scope["method"] == "POST" and (refusal := admission.refusal(deadline=state.deadline)):
        raise refusal
