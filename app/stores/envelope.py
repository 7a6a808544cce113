"""A record as bytes: an uncompressed NumPy archive. Nothing in it is unpickled, so nothing in it can run.

The archive's CRC-32 finds damage, not forgery: everything that can write to the store is trusted.
"""

from io import BytesIO
from typing import Any

import numpy as np
from pydantic import BaseModel

from app.images.preprocess import Box, Prepared
from app.maps.record import Maps, Record

VERSION = 4  # of the archive's arrays; part of each key, so versions do not find each other's records


class DamagedRecord(Exception):
    """The bytes are not what `seal` wrote."""


class _Facts(BaseModel):
    """All that is not an array."""

    image_size: tuple[int, int]
    box: tuple[float, float, float, float]
    format: str


def seal(record: Record) -> bytes:
    image = record.image
    facts = _Facts(image_size=image.size, box=image.box, format=image.format)
    archive = BytesIO()
    np.savez(
        archive,
        allow_pickle=False,
        **record.maps.arrays(),
        pixels=image.pixels,
        thumbnail=np.frombuffer(image.thumbnail, np.uint8),
        facts=np.frombuffer(facts.model_dump_json().encode(), np.uint8),
    )
    return archive.getvalue()


def unseal(envelope: bytes) -> Record:
    """Raises DamagedRecord."""
    try:
        with np.load(BytesIO(envelope), allow_pickle=False) as archive:
            arrays: dict[str, Any] = {"lens": None, **archive}
        facts = _Facts.model_validate_json(arrays.pop("facts").tobytes())
        image = Prepared(
            pixels=arrays.pop("pixels"),
            size=facts.image_size,
            box=Box(*facts.box),
            format=facts.format,
            thumbnail=arrays.pop("thumbnail").tobytes(),
        )
        return Record(maps=Maps(**arrays), image=image)
    except Exception as error:  # zipfile and NumPy raise exceptions of a dozen kinds
        raise DamagedRecord from error
