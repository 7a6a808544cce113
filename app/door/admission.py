"""Whether there is room for a request, before a byte of its body is read."""

from collections.abc import Callable

from starlette.requests import HTTPConnection

from app.door.paths import PROBES
from app.errors import Overloaded, ServiceError


class Admission:
    """Refuses new pictures while there is a `refusal`, and anything on a connection too many. Never a probe."""

    def __init__(self, *, refusal: Callable[[float], ServiceError | None]) -> None:
        self._refusal = refusal

    def check(self, request: HTTPConnection) -> None:
        """Raises Overloaded, or what `refusal` says to the request's deadline."""
        if request.scope["path"] in PROBES:
            return
        if request.scope["state"].get("crowded"):
            raise Overloaded("Too many connections are open. Send this request again in a moment.")
        # Maps of pictures that were classified before cost little, and who asks for one has waited already.
        if request.scope["method"] == "POST" and (refusal := self._refusal(request.state.deadline)):
            raise refusal
