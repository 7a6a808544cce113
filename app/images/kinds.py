"""What bytes are, by how they begin: the accepted types of images, and what people send in place of one."""

import codecs
import re

LOOK_BYTES = 512  # of the beginning are looked at
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
_OTHERS = {  # the first that fits
    # The brand mif1 may be in an AVIF too, which has been looked for before.
    "HEIC": re.compile(_BRANDS + rb"(?:hei[cmsx]|hev[cmsx]|mif1|msf1)"),
    "a raw photograph": re.compile(rb"(?s:.{4})ftypcrx |FUJIFILMCCD-RAW"),
    "a video": re.compile(rb"(?s:.{4})ftyp(?:iso|mp4|avc1|qt  |M4V |3gp)|\x1a\x45\xdf\xa3|(?s:RIFF....AVI )"),
    "an archive": re.compile(
        rb"\x1f\x8b|PK(?:\x03\x04|\x05\x06)|7z\xbc\xaf|Rar!|BZh\d|\xfd7zXZ|\x28\xb5\x2f\xfd|(?s:.{257}ustar)"
    ),
    "PDF": re.compile(rb"%PDF-"),
    "SVG": re.compile(rb"\s*(?:<\?xml[^>]{0,200}>\s*)?<(?:!DOCTYPE svg|svg)\b", re.IGNORECASE),
    "HTML": re.compile(rb"\s*<(?:!DOCTYPE html|html|head|body|script)\b", re.IGNORECASE),
    "a form": re.compile(rb"(?:\r?\n)?--[^\r\n]{1,256}\r?\n[\w-]+ ?:|[\w.%+\[\]-]{1,64}=[^\s=]*(?:[&=]|\Z)"),
    "JSON": re.compile(rb'\s*(?:\{\s*["}]|\[\s*["{\[\d\]tfn-]|"[\w+/=]{16})'),
    "a data URL": re.compile(rb"data:[\w/+.-]*[;,]", re.IGNORECASE),
    "base64": re.compile(rb"\s*[\w+/-]{60,}={0,2}(?:\s.*)?\Z", re.DOTALL | re.ASCII),
}
_CONTROLS = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def what_is(data: bytes) -> str | None:
    """The name of what begins like `data`, of which LOOK_BYTES are enough. None if that is unknown."""
    start = data[:LOOK_BYTES]
    for name, beginning in (IMAGES | _OTHERS).items():
        if beginning.match(start):
            return name
    return "text" if start and _is_text(start) else None


def _is_text(start: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # its last letter may be cut
    except UnicodeDecodeError:
        return False
    return not _CONTROLS.search(start)
