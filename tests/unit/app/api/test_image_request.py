"""app/api/image_request.py and app/api/body/form.py: the images of a request's body."""

import asyncio
import base64
import codecs
import json
import tempfile
import time
from contextlib import closing
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from starlette.requests import ClientDisconnect, Request

from app.api.body.form import MAX_FIELD_BYTES, MAX_FIELDS
from app.api.body.json_reader import JsonReader
from app.api.image_request import ImageRequest
from app.door.admission import Admission
from app.errors import BodyTooLarge, MalformedRequest, UnsupportedType
from app.images.upload import Upload
from app.lifecycle import Lifecycle

FORM = "multipart/form-data; boundary=b"
CODEC = codecs.lookup("utf-8")
LAST = {"type": "http.request", "body": b"", "more_body": False}
LEFT = {"type": "http.disconnect"}


def uploads(*chunks: bytes, ends: dict[str, Any] | Exception = LAST, content_type: str | None) -> list[Upload]:
    """The images of a body that arrives in these chunks, and ends so: 3 at most."""
    receive = AsyncMock(side_effect=[*({**LAST, "body": chunk, "more_body": True} for chunk in chunks), ends])
    headers = [(b"content-type", content_type.encode("latin-1"))] if content_type is not None else []
    scope = {"type": "http", "headers": headers, "state": {"deadline": time.monotonic() + 60}}
    admission = Admission(max_images=1, max_wait_s=1, image_s=0, lifecycle=Lifecycle())
    with closing(JsonReader(admission=admission)) as reader:
        request = ImageRequest(Request(scope, receive), SimpleNamespace(json_reader=reader))
        return asyncio.run(request.read(max_images=3))[0]


def read(*chunks: bytes, **how: Any) -> list[bytes]:
    return [b"".join(upload.parts()) for upload in uploads(*chunks, **how)]


def part(content: bytes, disposition: str) -> bytes:
    return f"--b\r\nContent-Disposition: form-data; {disposition}\r\n\r\n".encode() + content + b"\r\n"


def file(content: bytes, *, name: str = "image") -> bytes:
    return part(content, f'name="{name}"; filename="{name}.png"')


def field(content: bytes) -> bytes:
    return part(content, 'name="note"')


END = b"--b--\r\n"


@pytest.mark.parametrize("content_type", [None, "", "image/jpeg", "text/html", "application/octet-stream", "nonsense"])
def test_a_raw_body_is_one_image_whatever_its_type(content_type):
    assert read(b"one", b"", b"two", content_type=content_type) == [b"onetwo"]
    assert read(b"", content_type=content_type) == [b""]


@pytest.mark.parametrize(
    "content_type", [FORM, "Multipart/Form-Data ; boundary=b", 'multipart/form-data; boundary="b"']
)
def test_the_files_of_a_form_are_images_in_their_order(content_type):
    """Fields beside them are ignored."""
    files = file(b"first", name="z") + file(b"", name="a") + file(b"third", name="z")
    body = field(b"x" * MAX_FIELD_BYTES) + files + field(b"x") + END
    assert read(body, content_type=content_type) == [b"first", b"", b"third"]


@pytest.mark.parametrize("type", ["image/jpeg", "Application/Octet-Stream"])
def test_a_part_with_the_type_of_an_image_needs_no_file_name_and_another_is_a_field(type):
    image = bytes(MAX_FIELD_BYTES + 1)
    for name, expected in ('"image"', None), ('"image"; filename="star.png"', "star.png"):
        body = part(image, f"name={name}\r\nContent-Type: {type}") + END
        (upload,) = uploads(body, content_type=FORM)
        assert (upload.name, b"".join(upload.parts())) == (expected, image)
    meta = part(b"{}", 'name="meta"\r\nContent-Type: application/json')
    assert read(meta + file(b"x") + END, content_type=FORM) == [b"x"]


@pytest.mark.parametrize("size", [1, 999])
def test_a_form_arrives_in_pieces_and_an_image_may_contain_what_looks_like_a_boundary(size):
    image = b"\r\n--bc\r\n--\r\n\r\n--"
    body = field(b"hello") + file(b"first") + file(image) + END
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    assert read(*pieces, content_type=FORM) == [b"first", image]


def test_a_large_image_stays_in_memory(monkeypatch):
    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "rollover", lambda self: pytest.fail("written to the disk"))
    image = bytes(3 * 2**20)
    assert read(file(image) + END, content_type=FORM) == [image]


@pytest.mark.parametrize("content_type", ["multipart/mixed; boundary=b", "multipart/related"])
def test_types_that_cannot_carry_images_are_refused_before_the_body_is_read(content_type):
    with pytest.raises(UnsupportedType, match="image itself as the body"):
        read(ends=AssertionError("the body is read"), content_type=content_type)


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON; charset=utf-8"])
def test_images_in_json_are_base64(content_type):
    image = bytes(2**20)  # more than is parsed on the event loop
    body = json.dumps({"inputs": base64.b64encode(image).decode()}).encode()
    assert read(body[:7], body[7:], content_type=content_type) == [image]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (field(b"star.jpg") + END, r"no file\. With curl, put @"),
        (END, "no file"),
        (file(b"x") * 4 + END, "too many images: send at most 3"),
        (file(b"x") + field(b"") * (MAX_FIELDS + 1) + END, "more than 16 parts that are no files"),
        (file(b"x") + field(b"x" * (MAX_FIELD_BYTES + 1)) + END, "no file has more than 65,536 bytes"),
    ],
)
def test_a_form_with_no_file_or_too_many_is_refused_with_what_to_do(body, said):
    with pytest.raises(MalformedRequest, match=said):
        read(body, content_type=FORM)


ONE = file(b"x") + END
BROKEN = {
    "no boundary": (ONE, "multipart/form-data"),
    "an empty boundary": (ONE, "multipart/form-data; boundary="),
    "a boundary in half quotes": (ONE, 'multipart/form-data; boundary="b'),
    "a boundary that is too long": (ONE, "multipart/form-data; boundary=" + 257 * "b"),
    "another boundary": (ONE, "multipart/form-data; boundary=c"),
    "a type for a slow expression": (ONE, 'multipart/form-data; !="' + "\\" * 8000),
    "lines ended by LF": (ONE.replace(b"\r", b""), FORM),
    "no last boundary": (file(b"x"), FORM),
    "no boundary after the last of two files": (file(b"x") + file(b"y")[:-2], FORM),
    "cut in its boundary": (file(b"x")[:-4], FORM),
    "a part without a header": (b"--b\r\n\r\nx\r\n" + END, FORM),
    "a part without a name": (b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n" + END, FORM),
    "multipart in multipart": (b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c--\r\n" + END, FORM),
    "a part with nine fields": (b"--b\r\n" + b"X: y\r\n" * 9 + ONE[5:], FORM),
    "a part with a field of 5 KiB": (b"--b\r\nX: " + b"y" * 5000 + b"\r\n" + ONE[5:], FORM),
    "not a form": (b"not a form", FORM),
}


@pytest.mark.parametrize("charset", ["punycode", "undefined", "unicode_escape", "nonsense"])
def test_names_are_utf8_whatever_the_form_says(monkeypatch, charset):
    """No charset is looked up: Python keeps every name that it does not know."""
    monkeypatch.setattr("codecs.lookup", lambda name: pytest.fail(name) if name != "utf-8" else CODEC)
    body = part(b"x", r'name="image"; filename="\ud800-!.png"') + field(b"a" * MAX_FIELD_BYTES) + END
    (upload,) = uploads(body, content_type=f"{FORM}; charset={charset}")
    assert upload.name == r"\ud800-!.png"


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_form_is_refused(name):
    body, content_type = BROKEN[name]
    with pytest.raises(MalformedRequest, match=r"broken|no file"):
        read(body, content_type=content_type)


@pytest.mark.parametrize(
    ("names", "name"),
    [
        ('filename="../../etc/passwd"', "../../etc/passwd"),
        ('filename="a\\"b.jpg"', 'a"b.jpg'),
        ('filename="日本.jpg"', "日本.jpg"),
        ('filename=""', None),
        (f'filename="{"x" * 4000}"', "x" * 4000),
    ],
)
def test_a_file_keeps_its_name(names, name):
    (upload,) = uploads(part(b"image", f'name="f"; {names}') + END, content_type=FORM)
    assert (b"".join(upload.parts()), upload.name) == (b"image", name)


@pytest.mark.parametrize("content_type", [None, FORM])
@pytest.mark.parametrize(("ends", "raised"), [(LEFT, ClientDisconnect), (BodyTooLarge("Too much."), BodyTooLarge)])
def test_what_ends_the_body_early_is_raised(content_type, ends, raised):
    with pytest.raises(raised):
        read(file(b"x"), ends=ends, content_type=content_type)
