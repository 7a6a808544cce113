"""The formats of an answer about maps: PNG, JSON, or NumPy's own."""

from collections.abc import Iterable
from io import BytesIO
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

BINARY = {"type": "string", "format": "binary"}
Format = Literal["png", "json", "npy"]
MEDIA_TYPES: dict[Format, str] = {"png": "image/png", "json": "application/json", "npy": "application/x-npy"}


def representations(*formats: Format) -> dict[int | str, dict[str, Any]]:
    """The entry of OpenAPI for a path that answers in these formats, and whose `response_class` is Response."""
    binary = {"schema": BINARY, "example": "(a file)"}
    return {200: {"content": {MEDIA_TYPES[format]: {} if format == "json" else binary for format in formats}}}


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


def npy(array: npt.NDArray[np.float32]) -> bytes:
    """An array as NumPy's own file format."""
    out = BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()
