"""app/api/body/images.py: the images of a request's body."""

import asyncio
import base64
import json
import tempfile
import time
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request

from app.api.body.images import MAX_FIELD_BYTES, MAX_FIELDS, read_body
from app.api.body.json_reader import JsonReader
from app.door.admission import Admission
from app.errors import BodyTooLarge, MalformedRequest, UnsupportedType
from app.lifecycle import Lifecycle

FORM = "multipart/form-data; boundary=b"
LEFT = {"type": "http.disconnect"}


def read(*messages: bytes | dict[str, Any] | Exception, content_type: str | None, max_images: int = 3) -> list[bytes]:
    """The images of a body that arrives in these chunks."""
    waiting = list(messages)

    async def receive() -> dict[str, Any]:
        message = waiting.pop(0)
        if isinstance(message, Exception):
            raise message
        if isinstance(message, bytes):
            return {"type": "http.request", "body": message, "more_body": bool(waiting)}
        return message

    headers = [(b"content-type", content_type.encode("latin-1"))] if content_type is not None else []
    scope = {"type": "http", "headers": headers, "state": {"deadline": time.monotonic() + 60}}
    reader = JsonReader(admission=Admission(max_images=1, max_wait_s=1, image_s=0, lifecycle=Lifecycle()))
    try:
        uploads, _ = asyncio.run(read_body(Request(scope, receive), reader, max_images=max_images))
    finally:
        reader.close()
    return [b"".join(upload.parts()) for upload in uploads]


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


def test_an_empty_raw_body_is_an_image_of_no_bytes():
    assert read(b"", content_type=None) == [b""]


@pytest.mark.parametrize(
    "content_type", [FORM, "Multipart/Form-Data ; boundary=b", 'multipart/form-data; boundary="b"']
)
def test_the_files_of_a_form_are_images_in_their_order(content_type):
    body = file(b"first", name="z") + file(b"", name="a") + file(b"third", name="z") + END
    assert read(body, content_type=content_type) == [b"first", b"", b"third"]


def test_a_form_may_arrive_in_pieces_of_any_size():
    body = file(b"first") + file(b"second") + END
    assert read(*(bytes([byte]) for byte in body), content_type=FORM) == [b"first", b"second"]


def test_an_image_may_contain_what_looks_like_a_boundary():
    image = b"\r\n--bc\r\n--\r\n\r\n--"
    assert read(file(image) + END, content_type=FORM) == [image]


def test_fields_beside_the_images_are_ignored():
    body = field(b"hello") + file(b"image") + field(b"x" * MAX_FIELD_BYTES) + END
    assert read(body, content_type=FORM) == [b"image"]


def test_a_large_image_stays_in_memory(monkeypatch):
    def rollover(self: object) -> None:
        raise AssertionError("written to the disk")

    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "rollover", rollover)
    image = bytes(3 * 2**20)
    assert read(file(image) + END, content_type=FORM) == [image]


@pytest.mark.parametrize(
    "content_type",
    ["multipart/mixed; boundary=b", "multipart/related"],
)
def test_types_that_cannot_carry_images_are_refused_before_the_body_is_read(content_type):
    with pytest.raises(UnsupportedType, match="image itself as the body"):
        read(AssertionError("the body is read"), content_type=content_type)


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON; charset=utf-8"])
def test_images_in_json_are_base64(content_type):
    image = bytes(2**20)  # more than is parsed on the event loop
    body = json.dumps({"inputs": base64.b64encode(image).decode()}).encode()
    assert read(body[:7], body[7:], content_type=content_type) == [image]


@pytest.mark.parametrize("body", [field(b"image") + END, END], ids=["a field and no file", "no parts"])
def test_a_form_without_a_file_is_refused(body):
    with pytest.raises(MalformedRequest, match="no image"):
        read(body, content_type=FORM)


def test_as_many_images_as_are_allowed_and_one_more():
    assert len(read(file(b"x") * 3 + END, content_type=FORM)) == 3
    with pytest.raises(MalformedRequest, match="more than 3 images"):
        read(file(b"x") * 4 + END, content_type=FORM)


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
    "cut in its boundary": (file(b"x")[:-4], FORM),
    "a part without a header": (b"--b\r\n\r\nx\r\n" + END, FORM),
    "a part without a name": (b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n" + END, FORM),
    "multipart in multipart": (
        b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\nx\r\n--c--\r\n" + END,
        FORM,
    ),
    "a part with nine fields": (b"--b\r\n" + b"X: y\r\n" * 9 + ONE[5:], FORM),
    "a part with a field of 5 KiB": (b"--b\r\nX: " + b"y" * 5000 + b"\r\n" + ONE[5:], FORM),
    "too many fields": (file(b"x") + field(b"") * (MAX_FIELDS + 1) + END, FORM),
    "a field that is too large": (file(b"x") + field(b"x" * (MAX_FIELD_BYTES + 1)) + END, FORM),
    "not a form": (b"not a form", FORM),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_form_is_refused(name):
    body, content_type = BROKEN[name]
    with pytest.raises(MalformedRequest, match=r"broken|no image"):
        read(body, content_type=content_type)


@pytest.mark.parametrize(
    "disposition",
    [
        'name="f"; filename="../../etc/passwd"',
        'name="f"; filename="a\\"b.jpg"',
        'name="f"; filename="日本.jpg"',
        'name="f"; filename=""',
        f'name="f"; filename="{"x" * 4000}"',
        'name="../f"; filename="f"; filename="g"',
    ],
)
def test_file_names_are_ignored(disposition):
    assert read(part(b"image", disposition) + END, content_type=FORM) == [b"image"]


@pytest.mark.parametrize("content_type", [None, FORM])
def test_a_disconnect_before_the_end_of_the_body_is_raised(content_type):
    with pytest.raises(ClientDisconnect):
        read({"type": "http.request", "body": file(b"x"), "more_body": True}, LEFT, content_type=content_type)


@pytest.mark.parametrize("content_type", [None, FORM])
def test_an_error_of_the_door_is_raised(content_type):
    with pytest.raises(BodyTooLarge):
        read(file(b"x"), BodyTooLarge("Too much."), content_type=content_type)
