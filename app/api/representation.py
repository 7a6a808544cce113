"""One attention map as a client asked for it: a PNG, its numbers as JSON, or a NumPy array."""

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from app.api.services import ImageAnswer, ModelName
from app.drawing.heatmap import Style, draw
from app.drawing.scale import Limits
from app.maps.choice import AttentionMap, Chosen, Receipt
from app.maps.record import Record

Format = Literal["png", "json", "npy"]
MEDIA_TYPES: dict[Format, str] = {"png": "image/png", "json": "application/json", "npy": "application/x-npy"}


def representations(*formats: Format) -> dict[int | str, dict[str, Any]]:
    """The entry of OpenAPI for a path that answers in these formats."""
    return {200: {"content": {MEDIA_TYPES[format]: {} for format in formats}}}


class AttentionResponse(Chosen, ImageAnswer):
    """One map: how it was made, and its raw numbers."""

    grid: tuple[int, int]  # rows, columns
    values: list[float]  # row by row, unscaled
    min: float
    max: float
    limits: tuple[float, float]  # the numbers of the first and the last colour of the PNG
    sum: float
    class_token_mass: float
    distillation_mass: float
    register_mass: float
    image: tuple[int, int]  # width, height of the upright original
    receipt: Receipt | None  # of evidence
    crop_box: tuple[float, float, float, float]  # left, top, right, bottom of what the network saw, in its pixels


@dataclass(frozen=True, kw_only=True)
class View:
    """Everything that the answers about one map are made of."""

    id: str
    model: ModelName
    record: Record
    map: AttentionMap
    style: Style
    limits: Limits


def preferred_format(accept: str) -> Format:
    """The format that an Accept header prefers (RFC 9110, 12.5.1). PNG when it has no preference."""
    weights: dict[str, float] = {}
    for entry in accept.split(","):
        media_range, *parameters = (part.strip().lower() for part in entry.split(";"))
        quality = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        weights[media_range] = float(quality) if quality.replace(".", "", 1).isdecimal() else 0.0

    def weight(kind: Format) -> float:
        media_type = MEDIA_TYPES[kind]
        ranges = (media_type, f"{media_type.split('/')[0]}/*", "*/*")
        return next((weights[r] for r in ranges if r in weights), 0.0)

    return max(MEDIA_TYPES, key=weight)


def as_png(view: View) -> bytes:
    return draw(view.map.values, view.record, view.style, view.limits)


def as_npy(view: View) -> bytes:
    """float32 (rows, columns)."""
    return npy(view.map.values)


def npy(array: npt.NDArray[np.float32]) -> bytes:
    """An array as NumPy's own file format."""
    out = BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


def as_json(view: View) -> bytes:
    values, shown = view.map.values, view.map
    rows, columns = values.shape
    answer = AttentionResponse(
        id=view.id,
        model=view.model,
        **shown.chosen.model_dump(),
        grid=(rows, columns),
        values=values.ravel().tolist(),
        min=float(values.min()),
        max=float(values.max()),
        limits=view.limits,
        sum=float(values.sum(dtype=np.float64)),
        class_token_mass=shown.class_token_mass,
        distillation_mass=shown.distillation_mass,
        register_mass=shown.register_mass,
        receipt=shown.receipt,
        image=view.record.image_size,
        crop_box=view.record.box,
    )
    return answer.model_dump_json(exclude_none=True).encode()


RENDERERS: dict[Format, Callable[[View], bytes]] = {"png": as_png, "json": as_json, "npy": as_npy}
