"""Until when an answer is worth having."""

import math
import time

from starlette.requests import HTTPConnection

from app.errors import InvalidParameter

HEADER = "X-Request-Timeout"


class Deadline:
    """From now on what X-Request-Timeout says in seconds, at most `max_s`."""

    def __init__(self, *, max_s: float) -> None:
        self._max_s = max_s

    def check(self, request: HTTPConnection) -> None:
        """Sets `deadline` in the state, in seconds of `time.monotonic()`. Raises InvalidParameter."""
        asked = request.headers.get(HEADER)
        try:
            seconds = self._max_s if asked is None else float(asked)
        except ValueError:
            seconds = math.nan
        if not seconds > 0:
            raise InvalidParameter(f"{HEADER}: a number of seconds greater than 0 is expected.")
        request.state.deadline = time.monotonic() + min(seconds, self._max_s)
