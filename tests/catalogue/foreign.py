"""Data that is not an image of an accepted type and must never reach a parser: 415."""

import gzip
from functools import partial

from PIL import Image

from tests.catalogue.case import Case, bad, encode, quarters
from tests.catalogue.jpegs import jpeg, zipped

SVG = b"""<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<svg xmlns="http://www.w3.org/2000/svg"><text>&a;</text></svg>"""
LAUGHS = b"""<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><svg>&b;</svg>"""
PDF = b"%PDF-1.7\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF\n"
EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n(%pipe%id) (r) file\n"
OTHERS = {  # first bytes are enough to be recognised by
    "PSD": b"8BPS\0\1" + bytes(50), "FITS": b"SIMPLE  =                    T" + bytes(2850),
    "a JPEG 2000 codestream": b"\xff\x4f\xff\x51" + bytes(50), "JPEG XL": b"\xff\x0a" + bytes(50),
    "JPEG XL in a box": b"\0\0\0\x0cJXL \r\n\x87\n" + bytes(50), "JPEG-LS": b"\xff\xd8" + b"\x00\xf7" + bytes(50),
    "FLI": b"\0\0\0\0\x11\xaf" + bytes(122), "WMF": b"\xd7\xcd\xc6\x9a" + bytes(50), "EMF": b"\1\0\0\0" + bytes(36) + b" EMF" + bytes(50),
    "McIdas": b"\0\0\0\0\0\0\0\4" + bytes(248), "BLP": b"BLP2" + bytes(200), "HEIC": b"\0\0\0\x18ftypheic" + bytes(50),
    "WAV": b"RIFF\x24\0\0\0WAVEfmt " + bytes(50), "an animated cursor": b"RIFF\x24\0\0\0ACON" + bytes(50),
    "a cursor": b"\0\0\2\0\1\0" + bytes(50), "XPM": b'/* XPM */ static char *x[] = {"1 1 1 1","a c #000","a"};',
    "SWF": b"CWS\x09" + bytes(50), "MP4": b"\0\0\0\x20ftypisom" + bytes(50), "an executable": b"\x7fELF" + bytes(60), "a DOS program": b"MZ" + bytes(60),
    "QOI": b"qoif" + bytes(50), "OpenEXR": b"\x76\x2f\x31\x01" + bytes(50), "Radiance": b"#?RADIANCE\n" + bytes(50), "DICOM": bytes(128) + b"DICM",
    "text": b"hello, I am text", "HTML": b"<!doctype html><script>alert(1)</script>", "JSON": b'{"image": "abc"}', "a URL": b"http://127.0.0.1/a.jpg",
    "a path": b"/etc/passwd", "base64 of a JPEG": b"/9j/4AAQSkZJRgABAQ", "1 byte": b"\xff", "8 random bytes": b"\x9a\x11\x02\xfe\x37\x81\x00\x5c",
    "two bytes of a JPEG": b"\xff\xd8", "seven bytes of a PNG": b"\x89PNG\r\n\x1a", "a PNG after transfer as text": b"\x89PNG\n\x1a\n" + bytes(50),
    "a JNG": b"\x8bJNG\r\n\x1a\n" + bytes(50), "an MNG": b"\x8aMNG\r\n\x1a\n" + bytes(50), "bytes of zero": bytes(5000), "a pickle": b"\x80\x04\x95" + bytes(50),
    "a byte order mark before a PNG": b"\xef\xbb\xbf\x89PNG\r\n\x1a\n", "a space before a GIF": b" GIF89a" + bytes(50),
}  # fmt: skip
WRITABLE = ("DDS", "ICNS", "ICO", "JPEG2000", "PCX", "PPM", "SGI", "SPIDER", "TGA")


def cases() -> list[Case]:
    square = Image.new("RGB", (16, 16), "teal")
    return [
        bad("nothing", lambda: b"", 422),
        *(bad(name, partial(bytes, data), 415) for name, data in OTHERS.items()),
        *(bad(name, partial(encode, square.convert("F") if name == "SPIDER" else square, name), 415) for name in WRITABLE),
        bad("MSP", lambda: encode(square.convert("1"), "MSP"), 415),
        bad("XBM", lambda: encode(square.convert("1"), "XBM"), 415),
        bad("EPS", lambda: EPS, 415),
        bad("EPS with a preview", lambda: b"\xc5\xd0\xd3\xc6" + bytes(26) + EPS, 415),
        bad("PDF", lambda: PDF, 415),
        bad("a PDF that is a JPEG from its middle on", lambda: PDF + jpeg(), 415),
        bad("SVG that reads a file", lambda: SVG, 415),
        bad("SVG of a billion laughs", lambda: LAUGHS, 415),
        bad("a JPEG in gzip", lambda: gzip.compress(jpeg()), 415),
        bad("a JPEG in a ZIP", lambda: zipped("a.jpg", jpeg()), 415),
        bad("10 MB of zeros in gzip", lambda: gzip.compress(bytes(10_000_000)), 415),
        bad("pixels and nothing else", lambda: quarters().tobytes(), 415),
    ]  # fmt: skip
