"""A record as bytes: an uncompressed NumPy archive. Nothing in it is unpickled, so nothing in it can run.

The archive's CRC-32 finds damage, not forgery: everything that can write to the store is trusted.
"""

from io import BytesIO
from typing import Any

import numpy as np

from app.images.preprocess import Box, Prepared
from app.maps.record import Maps, Record

VERSION = 4  # of the archive's arrays; part of each key, so versions do not find each other's records


class DamagedRecord(Exception):
    """The bytes are not what `seal` wrote."""


def seal(record: Record) -> bytes:
    image, archive = record.image, BytesIO()
    np.savez(
        archive,
        allow_pickle=False,
        **record.maps.arrays(),
        pixels=image.pixels,
        thumbnail=np.frombuffer(image.thumbnail, np.uint8),
        size=image.size,
        box=image.box,
        format=image.format,
    )
    return archive.getvalue()


def unseal(envelope: bytes) -> Record:
    """Raises DamagedRecord."""
    try:
        with np.load(BytesIO(envelope), allow_pickle=False) as archive:
            arrays: dict[str, Any] = {"lens": None, **archive}
        width, height = arrays.pop("size").tolist()
        image = Prepared(
            pixels=arrays.pop("pixels"),
            size=(width, height),
            box=Box(*arrays.pop("box").tolist()),
            format=str(arrays.pop("format")),
            thumbnail=arrays.pop("thumbnail").tobytes(),
        )
        return Record(maps=Maps(**arrays), image=image)
    except Exception as error:  # zipfile and NumPy raise exceptions of a dozen kinds
        raise DamagedRecord from error
