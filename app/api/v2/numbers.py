"""A tensor of bytes from numbers in JSON, without an object for each number.

NumPy reads the text itself, in small steps, and lets go of Python's lock while it works.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

STEP_BYTES = 2**16
_ZERO = ord("0")
_WHITE = np.isin(np.arange(256), np.frombuffer(b" \t\r\n", np.uint8))  # by character

ByteArray = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]


def read_numbers(text: bytes, shape: tuple[int, ...]) -> ByteArray:
    """The array of this shape whose numbers, from 0 to 255, `text` lists: flat in row-major order, or nested.

    Raises ValueError for every other text.
    """
    if len(text) < 2 * math.prod(shape) - 1:  # a digit each, and commas: the outlines are as long as the shape claims
        raise ValueError("too few numbers")
    outlines = [_nested((math.prod(shape),)), _nested(shape)]
    outline, values, place = bytearray(), bytearray(), 0
    while place < len(text) and len(outline) <= len(outlines[1]):
        end = place + STEP_BYTES
        if end < len(text) and (end := text.rfind(b",", place, end) + 1) <= place:
            raise ValueError("a number is too long")
        step = np.frombuffer(text[place:end], np.uint8)
        digits = step - _ZERO
        is_digit = digits < 10
        outline += _outline(step, is_digit)
        values += _values(digits, is_digit).tobytes()
        place = end
    if outline not in outlines:
        raise ValueError("the numbers do not fit the shape")
    return np.frombuffer(values, np.uint8).reshape(shape)


def _outline(step: ByteArray, is_digit: Flags) -> bytes:
    """The text without white space and with a 0 in place of each number."""
    first = is_digit & ~_shifted(is_digit, 1)
    seen = first | ~(is_digit | _WHITE[step])
    outline: ByteArray = np.where(first, np.uint8(_ZERO), step)[seen]
    return outline.tobytes()


def _values(digits: ByteArray, is_digit: Flags) -> ByteArray:
    """Of each number, taken where its last digit is. Raises ValueError."""
    units = np.where(is_digit, digits, 0).astype(np.uint16)
    two = is_digit & _shifted(is_digit, 1)  # digits end here
    three = two & _shifted(is_digit, 2)
    values = units + 10 * _shifted(units, 1) * two + 100 * _shifted(units, 2) * three
    begins = is_digit & ~_shifted(is_digit, 1)
    if (
        (values > 255).any()
        or (three & _shifted(is_digit, 3)).any()
        or (two & _shifted(begins & (units == 0), 1)).any()
    ):
        raise ValueError("a number is not between 0 and 255")
    ends = is_digit & ~np.append(is_digit[1:], False)
    whole: ByteArray = values[ends].astype(np.uint8)
    return whole


def _shifted(values: npt.NDArray[Any], by: int) -> npt.NDArray[Any]:
    """What stands `by` places before each."""
    return np.concatenate((np.zeros(min(by, len(values)), values.dtype), values[:-by]))


def _nested(shape: tuple[int, ...]) -> bytes:
    outline = b"0"
    for size in reversed(shape):
        outline = b"[%b]" % ((outline + b",") * size)[:-1]
    return outline
