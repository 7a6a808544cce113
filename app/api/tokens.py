"""Tokens in an answer: the parameters that ask for them, and NumPy's own format, which is the only one they have."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from fastapi import Request, Response
from pydantic import BaseModel, Field

from app.api.parameters import refused
from app.api.render import MEDIA_TYPES, npy, preferred_format
from app.bundle import Manifest
from app.errors import NotAcceptable
from app.inference.tokens import Which, arranged
from app.inference.unit import unit

LayerField = Annotated[
    int | None,
    Field(
        ge=1,
        description="Tokens after so many blocks, without the norm; of the bundle's `--layers`. It counts from 1, and "
        "`layer` of a map from 0",
    ),
]
DtypeField = Annotated[Literal["float32", "float16"], Field(description="Of the numbers in an array")]


class TokenParameters(BaseModel):
    """Which tokens, and as which numbers."""

    tokens: Annotated[Which, Field(description="`patches` (rows, columns, features), or `all` (tokens, features)")] = (
        "patches"
    )
    layer: LayerField = None
    dtype: DtypeField = "float32"


def check_accepted(request: Request) -> None:
    """Raises NotAcceptable for a request that prefers JSON."""
    if preferred_format(request.headers.getlist("accept"), among=("npy", "json")) == "json":
        raise NotAcceptable("Tokens come as application/x-npy alone: an image has too many numbers for JSON.")


def as_dtype(array: npt.NDArray[np.float32], dtype: str) -> npt.NDArray[np.floating]:
    """Raises InvalidParameter for a number that float16 does not have."""
    with np.errstate(over="ignore"):
        cast: npt.NDArray[np.floating] = array.astype(dtype, copy=False)
    if dtype == "float16" and not np.isfinite(cast.sum(dtype=np.float32)):
        raise refused("dtype", "dtype=float16 ends at 65504, and these numbers go beyond: ask for float32.")
    return cast


def packed(
    tokens: Sequence[npt.NDArray[np.floating]], manifest: Manifest, which: Which, dtype: str, *, normalize: bool = False
) -> bytes:
    """The file of the tokens (T, features) of each image; with `normalize` each is divided by its Euclidean norm."""
    array = arranged(tokens, manifest, which)
    return npy(as_dtype(unit(array) if normalize else array, dtype))


async def answered(
    tokens: Sequence[npt.NDArray[np.floating]], manifest: Manifest, which: Which, dtype: str, *, normalize: bool = False
) -> Response:
    """The same as an answer, made in a thread: copying megabytes would block the event loop."""
    body = await asyncio.to_thread(packed, tokens, manifest, which, dtype, normalize=normalize)
    return Response(body, media_type=MEDIA_TYPES["npy"])
