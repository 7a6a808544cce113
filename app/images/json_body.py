"""JSON of a client, read where it can do no harm: in a worker, which answers its small part and its large values. The
service reads JSON of a few KiB itself.

Large are strings of base64, for images, and lists of bytes as numbers, for pixels. Null takes their place in the
document, and the way to it stands beside the document: so nothing in a document can be taken for one of them.
"""

import binascii
import json
import re
import struct
from itertools import chain
from typing import Any, Never

import numpy as np
import numpy.typing as npt

from app.errors import MalformedRequest
from app.images.messages import MAX_FACTS_BYTES, GarbledAnswer, pack, unpack
from app.images.upload import Buffer, Upload

LARGE_BYTES = 2**9  # of a string or of a list of numbers that is set aside
MAX_DEPTH = 16  # of lists and objects in each other
_DATA_URL = re.compile(rb"data:[\w/+.-]*(?:;[\w.-]+=[\w.-]*)*;base64,", re.IGNORECASE)
_ADDRESS = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://")
_URL_SAFE = bytes.maketrans(b"-_", b"+/")  # RFC 4648, 5

Large = tuple[list[str | int], tuple[int, ...], Buffer]  # where it stands, the shape of numbers, and the bytes


def image_in_base64(text: str) -> bytes:
    """`text` may be a data URL, URL-safe, in lines, and without padding. Raises MalformedRequest."""
    letters = text.strip().encode(errors="replace")
    if _ADDRESS.match(letters):
        raise MalformedRequest("The service does not fetch addresses: send the image itself in base64.")
    if prefix := _DATA_URL.match(letters):
        letters = letters[prefix.end() :]
    letters = letters.translate(_URL_SAFE, b"\t\r\n")
    try:
        return binascii.a2b_base64(letters + b"=" * (-len(letters) % 4), strict_mode=True)
    except ValueError:
        raise MalformedRequest(
            f"An image in JSON must be base64, and a text must be shorter than {LARGE_BYTES} characters."
        ) from None


def image_of(value: str | Upload) -> Upload:
    """The image that stands in JSON. Raises MalformedRequest."""
    return value if isinstance(value, Upload) else Upload([image_in_base64(value)])


def is_data_url(text: str) -> bool:
    """Whether it is an image where a text may stand too."""
    return _DATA_URL.match(text.strip().encode(errors="replace")) is not None


def bytes_in_numbers(values: list[Any]) -> npt.NDArray[np.uint8] | None:
    """The array of whole numbers from 0 to 255 that a nested list is, or None."""
    shape = [len(values)]
    while set(map(type, values)) == {list} and len(shape) < MAX_DEPTH:
        shape.append(len(values[0]))
        if set(map(len, values)) != {shape[-1]}:
            return None
        values = [*chain.from_iterable(values)]
    if set(map(type, values)) != {int}:  # a bool is none
        return None
    try:
        return np.frombuffer(bytes(values), np.uint8).reshape(shape)
    except ValueError:
        return None


def read_json(data: bytes) -> bytes:
    """A document and its large values, as `unpack_document` takes them.

    Raises MalformedRequest where `data` is not JSON in UTF-8, has a member twice, is nested too deeply, or is too large
    without its large values, and where memory is short.
    """
    # Before anything is built: no image has such a character, and a pixel has three numbers.
    if data.count(b'"') + data.count(b"{") > MAX_FACTS_BYTES or data.count(b"[") > MAX_FACTS_BYTES + len(data) // 6:
        raise _too_much()
    try:
        document = [json.loads(str(data, "utf-8-sig"), object_pairs_hook=_members, parse_constant=_refused)]
        large = _set_aside(document)
        places = [(path, shape, len(value)) for path, shape, value in large]
        first, facts, *values = pack([document, places], *(value for _, _, value in large))
        if len(facts) > MAX_FACTS_BYTES:
            raise _too_much()
        return b"".join((first, facts, *values))
    except (ValueError, RecursionError):
        raise MalformedRequest("The body is not JSON in UTF-8.") from None
    except MemoryError:
        raise MalformedRequest("Reading this JSON takes too much memory.") from None


def unpack_document(answer: Buffer) -> Any:
    """The document, with an Upload for each long string and an array for each long list of numbers, which refer to
    `answer`. Raises MalformedRequest, or GarbledAnswer for what `read_json` does not write.
    """
    try:
        (document, places), at = unpack(answer)
        for path, shape, size in places:
            value = memoryview(answer)[at : at + size]
            at += size
            place = document
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = np.frombuffer(value, np.uint8).reshape(shape) if shape else Upload([value])
        return document[0]
    except (ValueError, LookupError, TypeError, RecursionError, struct.error) as error:
        raise GarbledAnswer from error


def _set_aside(document: list[Any]) -> list[Large]:
    """The large values, in place of which the document has null."""
    large: list[Large] = []
    holders: list[tuple[list[str | int], Any]] = [([], document)]
    members = 0
    for path, holder in holders:
        members += len(holder)
        if members > MAX_FACTS_BYTES:
            raise _too_much()
        if len(path) > MAX_DEPTH:
            raise MalformedRequest(f"The JSON has more than {MAX_DEPTH} lists and objects in each other.")
        for key, value in holder.items() if isinstance(holder, dict) else enumerate(holder):
            there = [*path, key]
            if isinstance(value, str) and len(value) >= LARGE_BYTES:
                large.append((there, (), image_in_base64(value)))
                holder[key] = None
            elif (  # a list in a list was tried with it
                isinstance(value, list)
                and not (path and isinstance(holder, list))
                and (numbers := bytes_in_numbers(value)) is not None
            ):
                if numbers.size >= LARGE_BYTES:
                    large.append((there, numbers.shape, numbers.tobytes()))
                    holder[key] = None
            elif isinstance(value, list | dict):
                holders.append((there, value))
    return large


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise MalformedRequest("The JSON has a member twice.")
    return members


def _refused(constant: str) -> Never:
    raise ValueError(constant)  # NaN and Infinity, which JSON does not have


def _too_much() -> MalformedRequest:
    return MalformedRequest(f"The JSON has more than {MAX_FACTS_BYTES:,} bytes beside its images.")
