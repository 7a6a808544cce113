"""Everything that can go wrong for a client, in the order of its HTTP status. docs/api.md lists it as a table.

`app/http/problems.py` turns each error into a response. A detail repeats no exception text, no path and no bytes of
the user. The exception are names: of parameters, and in requests of the Open Inference Protocol, whose sentences are
Triton's. This module imports the standard library only, because the processes that decode images import it too.
"""

import math
import random
from collections.abc import Iterable, Mapping
from copy import copy
from difflib import get_close_matches
from http import HTTPStatus
from typing import Self

NAMESPACE = "urn:vit-serve:problem:"  # of the types of problems (RFC 9457)
MAX_RETRY_AFTER_S = 30  # without the spread
MIN_SPREAD_S = 2  # drawn at random, so that refused clients do not all come back at once


class CannotStart(Exception):
    """The process cannot start with these settings; the message says why."""


class ServiceError(Exception):
    """A failure with a public explanation; the classes below fix its status and kind, and some of them its detail."""

    status: HTTPStatus
    kind: str
    title: str
    detail: str = ""
    headers: Mapping[str, str] = {}
    members: Mapping[str, object] = {}  # of the problem, beside its own or in place of them

    def __init__(self, detail: str = "", *, wait_s: float = 0.0) -> None:
        """`wait_s` is the predicted wait of a request that comes now, in seconds."""
        self.detail = detail or self.detail
        super().__init__(self.detail)
        if self.status == HTTPStatus.SERVICE_UNAVAILABLE:
            first = min(max(math.ceil(wait_s), 1), MAX_RETRY_AFTER_S)
            self.headers = {"Retry-After": str(random.randint(first, first + max(first // 2, MIN_SPREAD_S)))}

    @property
    def problem(self) -> dict[str, object]:
        """The members of RFC 9457, without those that only an answer over HTTP has."""
        return {"type": NAMESPACE + self.kind, "title": self.title, "status": int(self.status), "detail": self.detail}

    def saying(self, **members: object) -> Self:
        """The same failure, with these members in its problem too. It is a new error: several images can share one."""
        error = copy(self)
        error.members = {**self.members, **members}
        return error


class MalformedRequest(ServiceError):
    status, kind, title = HTTPStatus.BAD_REQUEST, "malformed-request", "The request cannot be understood"


class Unauthorized(ServiceError):
    status, kind, title = HTTPStatus.UNAUTHORIZED, "unauthorized", "The request needs an API key"
    headers: Mapping[str, str] = {"WWW-Authenticate": 'Bearer realm="vit-serve"'}


class NotFound(ServiceError):
    status, kind, title = HTTPStatus.NOT_FOUND, "not-found", "Not Found"


class UnknownModel(ServiceError):
    """The sentences are Triton's."""

    status, kind, title = HTTPStatus.NOT_FOUND, "unknown-model", "There is no such model"

    def __init__(self, name: str, version: str = "") -> None:
        which = f"{name!r} version {version}" if version else repr(name)
        super().__init__(f"Request for unknown model: {which} is not found")


class UnknownAttention(ServiceError):
    status, kind, title = HTTPStatus.NOT_FOUND, "unknown-attention", "There are no attention maps with this id"
    detail = "The id is unknown or its maps have expired. POST the image to /classify to get a new id."


class UnknownPicture(ServiceError):
    status, kind, title = HTTPStatus.NOT_FOUND, "unknown-picture", "The model has no such picture"

    def __init__(self, known: Iterable[str]) -> None:
        super().__init__(f"The pictures of this model are: {', '.join(known) or 'none'}.")


class NotAcceptable(ServiceError):
    status, kind, title = HTTPStatus.NOT_ACCEPTABLE, "not-acceptable", "The answer does not have the asked form"


class SlowRequest(ServiceError):
    status, kind, title = HTTPStatus.REQUEST_TIMEOUT, "slow-request", "The request did not arrive in time"


class NoClasses(ServiceError):
    status, kind, title = HTTPStatus.CONFLICT, "no-classes", "The model has no classes"
    detail = (
        "This model has no head, so it has no labels. POST /embed returns embeddings, and maps with attention=true."
    )


class BodyTooLarge(ServiceError):
    status, kind, title = HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large", "The request has too many bytes"


class UnsupportedType(ServiceError):
    status, kind, title = HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported-type", "The image type is not accepted"


class UnsupportedEncoding(ServiceError):
    status, kind = HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported-encoding"
    title = "A content encoding is not accepted"
    headers: Mapping[str, str] = {"Accept-Encoding": "identity"}  # RFC 9110, 12.5.3


class UnusableImage(ServiceError):
    status, kind, title = HTTPStatus.UNPROCESSABLE_ENTITY, "unusable-image", "The image cannot be used"


class UnfamiliarImage(ServiceError):
    status, kind = HTTPStatus.UNPROCESSABLE_ENTITY, "unfamiliar-image"
    title = "The image is unlike those that the model knows"

    familiarity = 0.0

    @classmethod
    def below(cls, least: float, familiarity: float) -> Self:
        error = cls(
            f"The image is unlike those that the model knows: its familiarity is {familiarity:.2g}, and {least:g} is "
            "the least."
        )
        error.familiarity, error.members = familiarity, {"familiarity": familiarity}
        return error


class InvalidParameter(ServiceError):
    status, kind = HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-parameter"
    title = "A parameter is unknown, out of range, or not for this model"


class HeaderTooLarge(ServiceError):
    status, kind, title = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "header-too-large", "The header is too large"


class Fault(ServiceError):
    """An unexpected failure. It reveals nothing."""

    status, kind, title = HTTPStatus.INTERNAL_SERVER_ERROR, "internal-server-error", "Internal Server Error"
    detail = "This is a fault of the service, not of the request."


class InferenceFailed(ServiceError):
    status, kind, title = HTTPStatus.INTERNAL_SERVER_ERROR, "inference-failed", "The model failed on this image"
    detail = "The model fails on this image, or produces NaN or infinity for it. Other images are not affected."


class Overloaded(ServiceError):
    status, kind, title = HTTPStatus.SERVICE_UNAVAILABLE, "overloaded", "The service cannot take more work now"


class DeadlineExceeded(ServiceError):
    status, kind, title = HTTPStatus.SERVICE_UNAVAILABLE, "deadline-exceeded", "The answer was not ready in time"
    detail = "The deadline passed before the answer was ready. Send this request again in a moment."


class Unavailable(ServiceError):
    status, kind, title = HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", "The service is stopping or has failed"


class StoreUnavailable(ServiceError):
    status, kind, title = HTTPStatus.SERVICE_UNAVAILABLE, "store-unavailable", "The store of attention maps is down"
    detail = "The store of attention maps does not answer. Send this request again in a moment."


def is_meant(name: str, known: Iterable[str]) -> str:
    """`: is top_k meant?` for the name that is nearest to an unknown one, or nothing if none is near."""
    spelled = {other.lower(): other for other in known}
    near = get_close_matches(name.lower()[:64], spelled, n=1, cutoff=0.75)
    return f": is {spelled[near[0]]} meant?" if near else ""
