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


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (file(b"x") + END, "multipart/form-data"),
        (file(b"x") + END, "multipart/form-data; boundary=" + 300 * "b"),
        (file(b"x") + END, "multipart/form-data; boundary=c"),
        (b"--b\r\n\r\nx\r\n" + END, FORM),
        (file(b"x") + field(b"") * (MAX_FIELDS + 1) + END, FORM),
        (file(b"x") + field(b"x" * (MAX_FIELD_BYTES + 1)) + END, FORM),
        (b"no form at all", FORM),
    ],
    ids=[
        "no boundary",
        "a boundary that is too long",
        "another boundary",
        "a part without a disposition",
        "too many fields",
        "a field that is too large",
        "no form",
    ],
)
def test_a_broken_form_is_refused(body, content_type):
    with pytest.raises(MalformedRequest, match="broken"):
        read(body, content_type=content_type)


def test_a_form_that_stops_short_is_refused():
    with pytest.raises(MalformedRequest):
        read(file(b"x")[:-4], content_type=FORM)


@pytest.mark.parametrize("content_type", [None, FORM])
def test_a_client_that_leaves_before_the_end_is_noticed(content_type):
    with pytest.raises(ClientDisconnect):
        read({"type": "http.request", "body": file(b"x"), "more_body": True}, LEFT, content_type=content_type)


@pytest.mark.parametrize("content_type", [None, FORM])
def test_what_the_door_refuses_on_the_way_is_passed_on(content_type):
    with pytest.raises(BodyTooLarge):
        read(file(b"x"), BodyTooLarge("Too much."), content_type=content_type)
