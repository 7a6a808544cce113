"""The bytes of an image from base64 in JSON, in small steps: each holds Python's lock for less than a millisecond."""

import binascii
import re

from app.errors import MalformedRequest
from app.images.upload import Upload

STEP_BYTES = 2**16
_DATA_URL = re.compile(rb"data:[\w/+.-]*(?:;[\w.-]+=[\w.-]*)*;base64,", re.IGNORECASE)
_ADDRESS = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://")
_URL_SAFE = bytes.maketrans(b"-_", b"+/")  # RFC 4648, 5
_LONGEST_ESCAPE = len(r"\u002b")
_ESCAPED = {  # what JSON may escape in base64, and some writers do
    **{rf"\u{ord(letter):04x}".encode(): letter.encode() for letter in "+/="},
    **{rf"\u{ord(letter):04X}".encode(): letter.encode() for letter in "+/="},
    rb"\/": b"/",
    **dict.fromkeys((rb"\n", rb"\r", rb"\t"), b""),
}


def decode(text: str | memoryview) -> Upload:
    """The image that `text` says in base64, which may be a data URL, URL-safe, and without padding. A view is a JSON
    string with its escapes.

    Raises ValueError, and MalformedRequest for an address.
    """
    if isinstance(text, str):
        text = memoryview(text.encode())
    upload, left, place, ended, has_spaces = Upload(), b"", 0, False, False
    while place < len(text):
        step = bytes(text[place : place + STEP_BYTES])
        if place + len(step) < len(text) and (escape := step.rfind(b"\\", -_LONGEST_ESCAPE)) > 0:
            step = step[:escape]  # it may go on in the next step
        has_spaces |= b" " in step
        piece = _plain(step)
        if place == 0:
            if _ADDRESS.match(piece):
                raise MalformedRequest("The service does not fetch addresses: send the image itself in base64.")
            if prefix := _DATA_URL.match(piece):
                piece = piece[prefix.end() :]
        place += len(step)
        piece = left + piece.translate(_URL_SAFE)
        whole = len(piece) // 4 * 4
        if ended and piece:
            raise ValueError("something follows the padding")
        ended = piece[:whole].endswith(b"=")
        upload.add(binascii.a2b_base64(piece[:whole], strict_mode=True))
        left = piece[whole:]
    if left and has_spaces:  # each may have been a +, which forms send for a space
        raise ValueError("not a multiple of four letters")
    if left:
        upload.add(binascii.a2b_base64(left + b"=" * (-len(left) % 4), strict_mode=True))
    return upload


def _plain(text: bytes) -> bytes:
    """Without escapes and white space."""
    if b"\\" in text:
        for escaped, letter in _ESCAPED.items():
            text = text.replace(escaped, letter)
    return text.translate(None, b" \t\r\n\f\v")
