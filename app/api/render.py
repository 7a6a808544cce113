"""An answer about maps as PNG, JSON or NumPy's own format: made in a thread, and not for a client that has it already.

A bounded number is made at a time, and none after its request's deadline.
"""

import asyncio
import hashlib
import re
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from concurrent.futures import Executor
from io import BytesIO
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from fastapi import Request, Response

from app.errors import DeadlineExceeded, Overloaded
from app.telemetry.request_state import RequestState

BINARY = {"type": "string", "format": "binary"}
FILE = {"schema": BINARY, "example": "(a file)"}
ANY_FILE = {"application/octet-stream": FILE}  # generators of clients leave out what they do not know
Format = Literal["png", "json", "npy"]
MEDIA_TYPES: dict[Format, str] = {"png": "image/png", "json": "application/json", "npy": "application/x-npy"}
MAX_AGE_S = 3600
_OPAQUE_TAG = re.compile(r'"[^"]*"')

T = TypeVar("T")


class Drawings:
    """Counts what is being drawn or waits for a thread."""

    def __init__(self, *, pool: Executor, max_in_work: int) -> None:
        self._pool = pool
        self._places = threading.Semaphore(max_in_work)  # a drawing leaves its place in the thread that has drawn

    async def draw(self, render: Callable[[], T], *, deadline: float) -> T:
        """The result of `render`, called in the pool. `deadline` is in seconds of time.monotonic.

        Raises Overloaded at once when `max_in_work` others are drawn or wait, and DeadlineExceeded at the deadline.
        A drawing that has not begun by then never begins. One that has begun is finished, and counts until then.
        """
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise DeadlineExceeded
        if not self._places.acquire(blocking=False):
            raise Overloaded("Too many maps are being drawn. Send this request again in a moment.")
        drawing = self._pool.submit(render)
        drawing.add_done_callback(lambda _: self._places.release())
        try:
            async with asyncio.timeout(left_s):
                return await asyncio.wrap_future(drawing)
        except TimeoutError:
            raise DeadlineExceeded from None


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


def representations(*formats: Format) -> dict[int | str, dict[str, Any]]:
    """The entry of OpenAPI for a path that answers in these formats, and whose `response_class` is Response."""
    content = {MEDIA_TYPES[format]: {} if format == "json" else FILE for format in formats}
    return {200: {"content": content if formats != ("npy",) else {**content, **ANY_FILE}}}


def preferred_format(accept: Iterable[str], *, among: Iterable[Format]) -> Format:
    """The format that lines of Accept prefer (RFC 9110, 12.5.1), or the first when they have no preference."""
    weights: dict[str, float] = {}
    for entry in ",".join(accept).split(","):
        media_range, *parameters = (part.strip().lower() for part in entry.split(";"))
        quality = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        weights[media_range] = float(quality) if quality.replace(".", "", 1).isdecimal() else 0.0

    def weight(kind: Format) -> tuple[float, int]:
        """Of two formats with one quality, the more exactly named one goes first, or last if both are refused."""
        media_type = MEDIA_TYPES[kind]
        ranges = ("*/*", f"{media_type.split('/')[0]}/*", media_type)
        exactness = max((place for place, r in enumerate(ranges) if r in weights), default=0)
        quality = weights.get(ranges[exactness], 0.0)
        return quality, exactness if quality else -exactness

    return max(among, key=weight)


def npy(array: npt.NDArray[np.floating]) -> bytes:
    """An array as NumPy's own file format."""
    out = BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()
