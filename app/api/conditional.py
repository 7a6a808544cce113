"""Answers that are drawn only if the client does not have them already."""

import asyncio
import hashlib
from collections.abc import Callable
from concurrent.futures import Executor

from fastapi import Response

from app.telemetry.stages import Stages

MAX_AGE_S = 3600


async def answer_once(
    *,
    recipe: tuple[object, ...],
    if_none_match: str,
    media_type: str,
    pool: Executor,
    stages: Stages,
    max_age_s: int = MAX_AGE_S,
    render: Callable[[], bytes],
) -> Response:
    """The bytes of `render`, drawn in `pool`, or 304 if the client's copy has the same recipe (RFC 9110, 13.1.2).

    `recipe` is everything that the bytes depend on; its parts have a `repr` that says all of them.
    """
    etag = f'"{hashlib.sha256(repr(recipe).encode()).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": f"private, max-age={max_age_s}", "Vary": "Accept"}
    if etag in if_none_match:
        return Response(status_code=304, headers=headers)
    with stages.time("render"):
        body = await asyncio.get_running_loop().run_in_executor(pool, render)
    return Response(body, media_type=media_type, headers=headers)
