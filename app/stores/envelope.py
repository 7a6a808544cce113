"""A record as bytes that another replica or version can check and refuse. There is no pickle, so nothing in it can run.

    magic  version  bytes of the header  bytes of the payload  digest of the model   (little-endian, fixed size)
    header: JSON, with the type and shape of every array
    payload: the arrays, the pixels and the thumbnail, one after the other
    CRC-32 of all before it

The checksum finds damage, not forgery: everything that can write to the store is trusted.
"""

import struct
import zlib
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, NonNegativeInt, ValidationError

from app.images.preprocess import Box
from app.inference.scoring import Prediction
from app.maps.record import Maps, Record

MAGIC = b"VITR"
VERSION = 2
START = struct.Struct("<4sHIQ32s")
CHECKSUM = struct.Struct("<I")

Refusal = Literal["damaged", "other-version", "other-model"]


class EnvelopeError(Exception):
    """The bytes are no record of this model."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(reason)
        self.reason: Refusal = reason


class _Array(BaseModel):
    dtype: Literal["<f4", "<i8", "|u1"]
    shape: tuple[NonNegativeInt, ...]

    @property
    def nbytes(self) -> int:
        count = np.dtype(self.dtype).itemsize
        for side in self.shape:  # Python's integers have no bound, so a wrong shape cannot overflow
            count *= side
        return count


class _Header(BaseModel):
    maps: dict[str, _Array]
    pixels: _Array
    thumbnail: NonNegativeInt  # bytes
    predictions: tuple[Prediction, ...]
    image_size: tuple[int, int]
    box: tuple[float, float, float, float]


def seal(record: Record, *, model: str) -> bytes:
    """The record in its envelope; `model` is the digest (SHA-256, hexadecimal) of the bundle it was made with."""
    maps = {name: _portable(array) for name, array in record.maps.arrays().items()}
    pixels = _portable(record.pixels)
    header = _Header(
        maps={name: _described(array) for name, array in maps.items()},
        pixels=_described(pixels),
        thumbnail=len(record.thumbnail),
        predictions=record.predictions,
        image_size=record.image_size,
        box=record.box,
    )
    head = header.model_dump_json().encode()
    start = START.pack(MAGIC, VERSION, len(head), record.nbytes, bytes.fromhex(model))
    arrays = [array.data for array in (*maps.values(), pixels)]
    contents: list[bytes | memoryview] = [start, head, *arrays, record.thumbnail]
    checksum = 0
    for part in contents:
        checksum = zlib.crc32(part, checksum)
    return b"".join([*contents, CHECKSUM.pack(checksum)])  # the only copy


def unseal(envelope: bytes, *, model: str) -> Record:
    """The record, its arrays as read-only views of `envelope`. Raises EnvelopeError for all but a record of `model`."""
    if len(envelope) < START.size + CHECKSUM.size:
        raise EnvelopeError("damaged")
    magic, version, header_bytes, payload_bytes, digest = START.unpack_from(envelope)
    if magic != MAGIC:
        raise EnvelopeError("damaged")
    if version != VERSION:
        raise EnvelopeError("other-version")
    if len(envelope) != START.size + header_bytes + payload_bytes + CHECKSUM.size:
        raise EnvelopeError("damaged")
    contents = memoryview(envelope)[: -CHECKSUM.size]
    if CHECKSUM.pack(zlib.crc32(contents)) != envelope[-CHECKSUM.size :]:
        raise EnvelopeError("damaged")
    if digest.hex() != model:
        raise EnvelopeError("other-model")
    try:
        header = _Header.model_validate_json(envelope[START.size : START.size + header_bytes])
        return _record(header, contents[START.size + header_bytes :])
    except (ValidationError, TypeError, ValueError):  # the checksum is right, but `seal` writes no such record
        raise EnvelopeError("damaged") from None


def _record(header: _Header, payload: memoryview) -> Record:
    if sum(array.nbytes for array in (*header.maps.values(), header.pixels)) + header.thumbnail != len(payload):
        raise ValueError
    maps: dict[str, Any] = {"lens": None}
    for name, array in header.maps.items():
        maps[name], payload = _taken(array, payload)
    pixels, payload = _taken(header.pixels, payload)
    return Record(
        maps=Maps(**maps),
        predictions=header.predictions,
        image_size=header.image_size,
        box=Box(*header.box),
        pixels=pixels,
        thumbnail=bytes(payload),
    )


def _taken(array: _Array, payload: memoryview) -> tuple[npt.NDArray[Any], memoryview]:
    """The first array of the payload, and the rest."""
    values = np.frombuffer(payload[: array.nbytes], dtype=array.dtype).reshape(array.shape)
    return values, payload[array.nbytes :]


def _portable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Little-endian and contiguous, whatever the machine or the array is."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def _described(array: npt.NDArray[Any]) -> _Array:
    return _Array.model_validate({"dtype": array.dtype.str, "shape": array.shape})
