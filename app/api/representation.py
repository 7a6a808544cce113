"""One attention map as a client asked for it: a picture, its numbers as JSON, or a NumPy array."""

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from app.api.schemas import AttentionResponse, ModelName
from app.drawing.heatmap import Style, draw
from app.drawing.scale import Limits
from app.maps.choice import AttentionMap
from app.maps.record import Record

Format = Literal["png", "json", "npy"]
MEDIA_TYPES: dict[Format, str] = {"png": "image/png", "json": "application/json", "npy": "application/x-npy"}


def representations(*formats: Format) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of a path that answers in these."""
    return {200: {"content": {MEDIA_TYPES[format]: {} for format in formats}}}


@dataclass(frozen=True, kw_only=True)
class View:
    """Everything that an answer about one map is made of."""

    id: str
    model: ModelName
    record: Record
    map: AttentionMap
    style: Style
    limits: Limits


def preferred_format(accept: str) -> Format:
    """What an Accept header likes best (RFC 9110, 12.5.1); PNG when it does not mind."""
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
    values = view.map.values
    rows, columns = values.shape
    return (
        AttentionResponse(
            id=view.id,
            model=view.model,
            method=view.map.method,
            layer=view.map.layer,
            head=view.map.head,
            label=view.map.label,
            against=view.map.against,
            recipe=view.map.recipe,
            grid=(rows, columns),
            values=values.ravel().tolist(),
            min=float(values.min()),
            max=float(values.max()),
            limits=view.limits,
            sum=float(values.sum(dtype=np.float64)),
            class_token_mass=view.map.class_token_mass,
            distillation_mass=view.map.distillation_mass,
            register_mass=view.map.register_mass,
            receipt=view.map.receipt,
            image=view.record.image_size,
            crop_box=view.record.box,
        )
        .model_dump_json(exclude_none=True)
        .encode()
    )


RENDERERS: dict[Format, Callable[[View], bytes]] = {"png": as_png, "json": as_json, "npy": as_npy}
