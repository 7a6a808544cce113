"""Answers that are drawn only if the client does not have them already."""

import hashlib
import re
from collections.abc import Awaitable, Callable, Collection, Mapping

from fastapi import Request, Response

from app.api.drawings import Drawings
from app.api.representation import MEDIA_TYPES, Format, preferred_format
from app.telemetry.request_state import RequestState

MAX_AGE_S = 3600
_OPAQUE_TAG = re.compile(r'"[^"]*"')


async def draw_unless_known(
    request: Request,
    drawings: Drawings,
    *,
    recipe: tuple[object, ...],
    formats: Collection[Format],
    render: Callable[[Format], Awaitable[Callable[[], bytes]]],
    format: Format | None,
    max_age_s: int = MAX_AGE_S,
) -> Response:
    """The bytes in `format`, or in the one that the Accept header prefers, or 304 if the client's copy has the same
    recipe (RFC 9110, 13.1.2).

    `recipe` is everything that the bytes depend on, but for the format. Its parts have a `repr` that says all of them.
    `render` gives the function that draws. Raises Overloaded, DeadlineExceeded, and what `render` raises.
    """
    kind = format or preferred_format(request.headers.getlist("accept"), among=formats)
    etag = f'"{hashlib.sha256(repr((*recipe, kind)).encode()).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": f"private, max-age={max_age_s}", "Vary": "Accept"}
    known = ",".join(request.headers.getlist("if-none-match"))
    if known.strip() == "*" or etag in _OPAQUE_TAG.findall(known):  # weak comparison ignores `W/` (RFC 9110, 8.8.3.2)
        return Response(status_code=304, headers=headers)
    return await drawn(request, drawings, await render(kind), kind, headers=headers)


async def drawn(
    request: Request,
    drawings: Drawings,
    draw: Callable[[], bytes],
    kind: Format,
    *,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """What `draw` gives, in this format. Raises Overloaded and DeadlineExceeded."""
    state = RequestState.of(request.scope)
    with state.stages.time("render"):
        body = await drawings.draw(draw, deadline=state.deadline)
    return Response(body, media_type=MEDIA_TYPES[kind], headers=headers)
