"""What bytes are, by how they begin: the accepted types of images, and what people send by mistake.

Every refusal of a body says what came and what to send, whatever it was called.
"""

import codecs
import re
from typing import NamedTuple

LOOK_BYTES = 512  # of the beginning are looked at
TEXT_BYTES = 2**12  # of an image are never UTF-8 by chance
_BMP = rb"(?s:BM.{4}(?:\0{4}|.{8}[\x0c\x10\x28\x34\x38\x40\x6c\x7c]\0{3}))"  # reserved bytes, or a known length
_BRANDS = rb"(?s:.{4}ftyp(?:.{4}){0,7})"  # the major brand and those that it is compatible with: ISO/IEC 14496-12, 4.3
IMAGES = {
    "JPEG": re.compile(rb"\xff\xd8\xff"),
    "PNG": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "WebP": re.compile(rb"(?s:RIFF.{4}WEBP)"),
    "GIF": re.compile(rb"GIF8[79]a"),
    "BMP": re.compile(_BMP),
    "TIFF": re.compile(rb"II\*\0|MM\0\*"),
    "AVIF": re.compile(_BRANDS + rb"avi[fs]"),
}
ACCEPTED = f"{', '.join([*IMAGES][:-1])} or {[*IMAGES][-1]}"
TEXT = "not an image of an accepted type, but text"
JSON = "JSON"
PYTHONS = "what Python prints of bytes, b'...'"

_SEND_IMAGE = f". Send {ACCEPTED}."
_AS_IT_IS = ": send it with its own content type, such as image/jpeg, or in JSON as base64."
_DECODE = ": send the bytes that it stands for, or JSON with it under inputs."
_UNPACK = f": unpack it first. Send {ACCEPTED}."
_FORMS_OWN = ": do not set Content-Type yourself, because the form's own names its boundary."
_DECODED = "an image that was decoded as text on its way", ": send the bytes of its file."
_ANY_CASE = re.IGNORECASE
_OTHERS: list[tuple[str, str, re.Pattern[bytes]]] = [  # the first that fits; behind a byte order mark of UTF-8 too
    (
        *_DECODED,
        re.compile(  # as UTF-8, with a mark in place of what is none or with nothing there, or as Latin-1
            rb"(?:\xef\xbf\xbd){3}|(?:\xef\xbf\xbd|\xc2\x89)?PNG\r?\n\x1a|\0\x10JFIF\0|\xc3\xbf\xc3\x98\xc3\xbf"
            rb"|(?s:RIFF.{0,12}WEBP)"
        ),
    ),
    # The brand mif1 may be in an AVIF too, which has been looked for before.
    (
        "HEIC",
        f"{_SEND_IMAGE} An iPhone takes JPEG if Settings, Camera, Formats says Most Compatible.",
        re.compile(_BRANDS + rb"(?:hei[cmsx]|hev[cmsx]|mif1|msf1)"),
    ),
    ("JPEG XL", _SEND_IMAGE, re.compile(rb"\xff\x0a|\0\0\0\x0cJXL ")),
    ("JPEG 2000", _SEND_IMAGE, re.compile(rb"\xff\x4f\xff\x51|\0\0\0\x0cjP  ")),
    ("a raw file of a camera", _SEND_IMAGE, re.compile(rb"(?s:.{4})ftypcrx |FUJIFILMCCD-RAW")),
    (
        "a video",
        _SEND_IMAGE,
        re.compile(rb"(?s:.{4})ftyp(?:iso|mp4|avc1|qt  |M4V |3gp)|\x1a\x45\xdf\xa3|(?s:RIFF....AVI )"),
    ),
    ("audio", _SEND_IMAGE, re.compile(rb"ID3|OggS|fLaC|(?s:RIFF.{4}WAVE)")),
    ("PDF", _SEND_IMAGE, re.compile(rb"%PDF-")),
    ("PostScript", _SEND_IMAGE, re.compile(rb"%!PS|\xc5\xd0\xd3\xc6")),
    ("a Photoshop file", _SEND_IMAGE, re.compile(rb"8BPS")),
    ("an icon", _SEND_IMAGE, re.compile(rb"\0\0[\x01\x02]\0[^\0]\0")),
    ("a Netpbm image", _SEND_IMAGE, re.compile(rb"P[1-7]\s")),
    ("DICOM", _SEND_IMAGE, re.compile(rb"(?s:.{128})DICM")),
    ("a NumPy array", _SEND_IMAGE, re.compile(rb"\x93NUMPY")),
    ("gzip", _UNPACK, re.compile(rb"\x1f\x8b")),
    ("a ZIP archive", _UNPACK, re.compile(rb"PK(?:\x03\x04|\x05\x06)")),
    ("an archive", _UNPACK, re.compile(rb"7z\xbc\xaf|Rar!|BZh\d|\xfd7zXZ|\x28\xb5\x2f\xfd|(?s:.{257}ustar)")),
    ("SVG", _SEND_IMAGE, re.compile(rb"\s*(?:<\?xml[^>]{0,200}>\s*)?<(?:!DOCTYPE svg|svg)\b", _ANY_CASE)),
    (
        "HTML",
        f", perhaps a page that was saved in place of an image. Send {ACCEPTED}.",
        re.compile(rb"\s*<(?:!DOCTYPE html|html|head|body|script)\b", _ANY_CASE),
    ),
    ("XML", _SEND_IMAGE, re.compile(rb"\s*<[?!A-Za-z]")),
    (
        "a pointer of Git LFS",
        ", which stands for a file: git lfs pull gets the file itself.",
        re.compile(rb"version https://git-lfs"),
    ),
    ("a form", _FORMS_OWN, re.compile(rb"(?:\r?\n)?--[^\r\n]{1,256}\r?\n[\w-]+ ?:")),
    (JSON, ": send Content-Type: application/json.", re.compile(rb'\s*(?:\{\s*["}]|\[\s*["{\[\d\]tfn-]|"[\w+/=]{16})')),
    (PYTHONS, ": send the bytes themselves.", re.compile(rb"b['\"]")),
    ("a data URL", _DECODE, re.compile(rb"data:[\w/+.-]*[;,]", _ANY_CASE)),
    ("an address", ", which the service does not fetch: send the image itself.", re.compile(rb"[A-Za-z][\w+.-]*://\S")),
    (
        "base64",
        _DECODE,
        re.compile(  # of an image, or long
            rb"\s*(?:(?:[/_]9j[/_]|iVBORw0KGgo|UklGR|R0lGOD|SUkqA|TU0AK|AAAA..Z0eXB)[\w+/=\r\n-]*"
            rb"|[\w+/-]{60,}={0,2}(?:\s.*)?)\Z",
            re.DOTALL | re.ASCII,
        ),
    ),
    (
        "a form without files",
        ": send the image itself as the body, or files in multipart/form-data. With curl: -F image=@photo.jpg.",
        re.compile(rb"[\w.%+\[\]-]{1,64}=[^\s=]*(?:[&=]|\Z)"),
    ),
    ("text in UTF-16", ": send UTF-8, or an image.", re.compile(rb"\xff\xfe(?s:.)\0|\xfe\xff\0")),
]
_CONTROLS = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")


class Kind(NamedTuple):
    name: str
    advice: str

    @property
    def sentence(self) -> str:
        return f"This is {self.name}{self.advice}"


def what_is(data: bytes) -> Kind | None:
    """What begins like `data`, of which LOOK_BYTES are enough. None if that is unknown."""
    start = data[:LOOK_BYTES]
    if image := next((name for name, beginning in IMAGES.items() if beginning.match(start)), None):
        return Kind(image, _AS_IT_IS)
    start = start.removeprefix(codecs.BOM_UTF8)
    for name, advice, beginning in _OTHERS:
        if beginning.match(start):
            return Kind(name, advice)
    return Kind(TEXT, _SEND_IMAGE) if start and _is_text(start) else None


def what_broke(data: bytes) -> Kind | None:
    """What became of an image that cannot be decoded. Some types can be told by letters alone, which no text loses."""
    start = data[:TEXT_BYTES]
    return Kind(*_DECODED) if _is_utf8(start) and not start.isascii() else None


def _is_text(start: bytes) -> bool:
    return _is_utf8(start) and not _CONTROLS.search(start)


def _is_utf8(start: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # its last letter may be cut
    except UnicodeDecodeError:
        return False
    return True
