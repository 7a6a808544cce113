"""app/api/image_request.py and app/api/body/form.py: the images of a request's body."""

import asyncio
import base64
import codecs
import json
import tempfile
from contextlib import closing
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.requests import ClientDisconnect, Request

from app.api.body.form import MAX_FIELD_BYTES, MAX_FIELDS
from app.api.body.json_reader import JsonReader
from app.api.image_request import ImageRequest
from app.door.admission import Admission
from app.errors import BodyTooLarge, InvalidParameter, MalformedRequest, UnsupportedType
from app.images.upload import Upload
from app.lifecycle import Lifecycle

FORM = "multipart/form-data; boundary=b"
CODEC = codecs.lookup("utf-8")
LAST = {"type": "http.request", "body": b"", "more_body": False}
LEFT = {"type": "http.disconnect"}


class Parameters(BaseModel):
    note: str = ""
    top_k: int | None = None
    attention: bool = True


def received(
    *chunks: bytes,
    ends: dict[str, Any] | Exception = LAST,
    content_type: str | None,
    query: bytes = b"",
) -> tuple[list[Upload], Parameters]:
    """The images and the parameters of a body that arrives in these chunks, and ends so: 3 images at most."""
    receive = AsyncMock(side_effect=[*({**LAST, "body": chunk, "more_body": True} for chunk in chunks), ends])
    headers = [(b"content-type", content_type.encode("latin-1"))] if content_type is not None else []
    scope = {"type": "http", "method": "POST", "headers": headers, "query_string": query}
    scope["route"] = SimpleNamespace(path="/classify")
    admission = Admission(max_images=1, max_wait_s=1, image_s=0, lifecycle=Lifecycle())
    with closing(JsonReader(admission=admission)) as reader:
        request = ImageRequest(Request(scope, receive), SimpleNamespace(json_reader=reader))
        return asyncio.run(request.read(Parameters, max_images=3))


def uploads(*chunks: bytes, **how: Any) -> list[Upload]:
    return received(*chunks, **how)[0]


def read(*chunks: bytes, **how: Any) -> list[bytes]:
    return [b"".join(upload.parts()) for upload in uploads(*chunks, **how)]


def part(content: bytes, disposition: str) -> bytes:
    return f"--b\r\nContent-Disposition: form-data; {disposition}\r\n\r\n".encode() + content + b"\r\n"


def file(content: bytes, *, name: str = "image") -> bytes:
    return part(content, f'name="{name}"; filename="{name}.png"')


def field(content: bytes, *, name: str = "note") -> bytes:
    return part(content, f'name="{name}"')


END = b"--b--\r\n"
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0" + bytes(60)


@pytest.mark.parametrize("content_type", [None, "", "image/jpeg", "text/html", "application/octet-stream", "nonsense"])
def test_a_raw_body_is_one_image_whatever_its_type(content_type):
    assert read(b"one", b"", b"two", content_type=content_type) == [b"onetwo"]
    assert read(b"", content_type=content_type) == [b""]


@pytest.mark.parametrize(
    "content_type", [FORM, "Multipart/Form-Data ; boundary=b", 'multipart/form-data; boundary="b"']
)
def test_the_files_of_a_form_are_images_in_their_order(content_type):
    """Fields beside them are parameters."""
    files = file(b"first", name="z") + file(b"", name="top_k") + file(b"third", name="z")
    body = field(b"n" * 50) + files + field(b"2", name="top_k") + END
    images, parameters = received(body, content_type=content_type)
    assert [b"".join(upload.parts()) for upload in images] == [b"first", b"", b"third"]
    assert parameters == Parameters(note="n" * 50, top_k=2)


@pytest.mark.parametrize("type", ["image/jpeg", "Application/Octet-Stream"])
def test_a_part_with_the_type_of_an_image_needs_no_file_name_and_another_is_a_field(type):
    image = bytes(MAX_FIELD_BYTES + 1)
    for name, expected in ('"image"', None), ('"image"; filename="star.png"', "star.png"):
        body = part(image, f"name={name}\r\nContent-Type: {type}") + END
        (upload,) = uploads(body, content_type=FORM)
        assert (upload.name, b"".join(upload.parts())) == (expected, image)
    note = part(b"{}", 'name="note"\r\nContent-Type: application/json')
    assert received(note + file(b"x") + END, content_type=FORM)[1] == Parameters(note="{}")


@pytest.mark.parametrize("type", ["", "\r\nContent-Type: text/plain", "\r\nContent-Type: application/octet-stream"])
def test_a_file_named_like_its_field_is_a_parameter_where_the_path_has_that(type):
    """`files={"top_k": "2"}` of requests."""
    body = file(b"x") * 3 + part(b"2", f'name="top_k"; filename="top_k"{type}') + END
    images, parameters = received(body, content_type=FORM)
    assert (len(images), parameters) == (3, Parameters(top_k=2))
    for name, file_name, kind in (("readme", "readme", ""), ("top_k", "2.txt", ""), ("top_k", "top_k", "image/png")):
        named = f'name="{name}"; filename="{file_name}"\r\nContent-Type: {kind or "text/plain"}'
        assert received(part(b"2", named) + END, content_type=FORM)[1] == Parameters()


def test_json_in_a_blob_of_a_browser_is_a_field():
    """FormData gives a Blob without a name of its own the name blob."""
    of_blob = 'filename="blob"\r\nContent-Type: application/json'
    images, parameters = received(file(b"x") + part(b"2", f'name="top_k"; {of_blob}') + END, content_type=FORM)
    assert (len(images), parameters) == (1, Parameters(top_k=2))
    with pytest.raises(InvalidParameter, match=r"^parameters is not a parameter of POST /classify, which takes note"):
        received(file(b"x") + part(b'{"top_k": 2}', f'name="parameters"; {of_blob}') + END, content_type=FORM)
    assert read(part(b"x", 'name="a"; filename="blob"\r\nContent-Type: image/png') + END, content_type=FORM) == [b"x"]


@pytest.mark.parametrize("size", [1, 999])
def test_a_form_arrives_in_pieces_and_an_image_may_contain_what_looks_like_a_boundary(size):
    image = b"\r\n--bc\r\n--\r\n\r\n--"
    body = field(b"hello") + file(b"first") + file(image) + END
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    assert read(*pieces, content_type=FORM) == [b"first", image]


def test_a_field_left_blank_is_not_given():
    """A browser sends every text field of a form, and FastAPI takes them so too. A blank name in a query is a value."""
    blank = field(b"", name="top_k") + part(b"", 'name="attention"; filename="attention"')
    assert received(blank + file(b"x") + END, content_type=FORM, query=b"note=a")[1] == Parameters(note="a")
    with pytest.raises(InvalidParameter, match=r"^topk is not a parameter"):
        received(field(b"", name="topk") + file(b"x") + END, content_type=FORM)
    with pytest.raises(RequestValidationError):
        received(file(b"x") + END, content_type=FORM, query=b"top_k=")


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
        (field(b"star.jpg") + END, "no file"),
        (END, "no file"),
        (part(b"", 'name="a"; filename=""') + END, "no file"),
        (part(b"", 'name="a"; filename=""') * (MAX_FIELDS + 1) + file(b"x") + END, "more than 16 fields"),
        (part(b"x", "x=y") + END, "A part of the form has no name"),
        (field(JPEG) + END, "no file"),
        (file(b"x") * 4 + END, "too many images: send at most 3"),
        (file(b"x") + field(b"") * (MAX_FIELDS + 1) + END, "more than 16 fields besides its files"),
        (file(b"x") + field(b"x " * MAX_FIELD_BYTES) + END, "larger than 65,536 bytes"),
    ],
)
def test_a_form_with_no_file_or_too_many_is_refused(body, said):
    with pytest.raises(MalformedRequest, match=said):
        read(body, content_type=FORM)


@pytest.mark.parametrize(
    "content_type",
    [
        "multipart/form-data", "multipart/form-data boundary=b", "multipart/form-data; boundary=",
        'multipart/form-data; !="' + "\\" * 8000,
    ],
)  # fmt: skip
def test_a_form_without_a_boundary_is_refused_before_the_body_is_read(content_type):
    with pytest.raises(MalformedRequest, match="has no boundary"):
        read(ends=AssertionError("the body is read"), content_type=content_type)


ONE = file(b"x") + END
BROKEN = {
    "a boundary in half quotes": (ONE, 'multipart/form-data; boundary="b'),
    "a boundary that is too long": (ONE, "multipart/form-data; boundary=" + 257 * "b"),
    "another boundary": (ONE, "multipart/form-data; boundary=c"),
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
    body = part(b"x", r'name="image"; filename="\ud800-!.png"') + field(b"a " * (MAX_FIELD_BYTES // 2)) + END
    (upload,) = uploads(body, content_type=f"{FORM}; charset={charset}")
    assert upload.name == r"\ud800-!.png"


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_form_is_refused(name):
    body, content_type = BROKEN[name]
    said = {
        "a part without a header": "no name",
        "a part without a name": "no name",
        "multipart in multipart": "no name",
        "no last boundary": "ends before",
        "no boundary after the last of two files": "ends before",
        "cut in its boundary": "ends before",
    }
    with pytest.raises(MalformedRequest, match=said.get(name, "broken")):
        read(body, content_type=content_type)


@pytest.mark.parametrize(
    ("names", "name"),
    [
        ('filename="../../etc/passwd"', "../../etc/passwd"),
        ('filename="a\\"b.jpg"', 'a"b.jpg'),
        ('filename="日本.jpg"', "日本.jpg"),
        ('filename=""', None),
        ("filename*=UTF-8''%e6%97%a5%20%22.jpg", '日 ".jpg'),  # old urllib3
        ("filename=\"=?utf-8?B?5pelLmpwZw==?=\"; filename*=utf-8''%E6%97%A5.jpg", "日.jpg"),  # .NET
        ('filename="=?UTF-8?B?5pelLmpwZw==?="', "日.jpg"),
        ('filename="=?punycode?B?5pelLmpwZw==?="', "=?punycode?B?5pelLmpwZw==?="),
        ('filename="=?utf-8?B?a?="', "=?utf-8?B?a?="),  # base64 of no length
        ('filename="=?utf-8?B?/w==?="', "=?utf-8?B?/w==?="),  # not UTF-8
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


def test_an_empty_file_input_of_a_browser_is_no_image_and_an_empty_file_is_one():
    unchosen = part(b"", 'name="b"; filename=""\r\nContent-Type: application/octet-stream')
    assert read(unchosen + file(b"x") + unchosen + file(b"y") + file(b"z") + END, content_type=FORM) == [
        b"x",
        b"y",
        b"z",
    ]
    for named in ('name="b"; filename="empty.jpg"', 'name="b"\r\nContent-Type: image/jpeg'):
        assert read(part(b"", named) + END, content_type=FORM) == [b""]


X = '"inputs": "eA=="'


@pytest.mark.parametrize(
    ("json", "expected"),
    [
        (f'{{{X}, "top_k": 2, "attention": false}}', Parameters(top_k=2, attention=False)),
        (f'{{{X}, "parameters": {{"top_k": "2"}}, "note": "a"}}', Parameters(top_k=2, note="a")),
        (f'\ufeff{{{X}, "top_k": null, "options": {{"wait_for_model": true}}}}', Parameters()),
    ],
)
def test_members_of_json_are_parameters(json, expected):
    assert received(json.encode(), content_type="application/json")[1] == expected


@pytest.mark.parametrize(
    ("json", "said"),
    [
        (f'{{{X}, "topk": 2}}', r"^topk is not a parameter of POST /classify: is top_k meant\?\.?$"),
        (f'{{{X}, "parameters": {{"Top_K": 2}}}}', r"^Top_K is not a parameter of POST /classify: is top_k meant"),
        (f'{{{X}, "k": 2}}', r"^k is not a parameter of POST /classify, which takes note, top_k, attention\.$"),
        (f'{{{X}, "<script>": 2}}', r"^A name in this request is not a parameter of POST /classify"),
        (f'{{{X}, "top_k": 2, "parameters": {{"top_k": 3}}}}', r"^top_k is given 2 times: give it once\.$"),
        (f'{{{X}, "attention": true}}', r"^attention is given 2 times"),
        (f'{{{X}, "top_k": 2, "top_k": 2}}', "a member twice"),
        (f"{{{X}, {X}}}", "a member twice"),
        (f'{{{X}, "image": "eA=="}}', "images under more than one name"),
        (f'{{{X}, "options": {{"top_k": 2}}}}', "The body must be JSON"),
        ("[" * 9000, "The body must be JSON"),
    ],
)
def test_other_members_and_those_given_twice_are_refused(json, said):
    with pytest.raises((InvalidParameter, MalformedRequest), match=said):
        received(json.encode(), content_type="application/json", query=b"attention=false")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (field(b"2", name="topk"), "^topk is not a parameter of POST /classify: is top_k meant"),
        (field(b"x", name="csrfmiddlewaretoken"), "^csrfmiddlewaretoken is not a parameter of POST /classify, which"),
        (field(b"2", name="top_k") * 2, "top_k is given 2 times"),
        (field(b"false", name="attention"), "attention is given 2 times"),
    ],
)
def test_other_fields_of_a_form_and_those_given_twice_are_refused(fields, said):
    with pytest.raises(InvalidParameter, match=said):
        received(file(b"x") + fields + END, content_type=FORM, query=b"attention=false")


@pytest.mark.parametrize(
    "body",
    [
        JPEG + bytes(2**15),
        ONE,
        base64.b64encode(JPEG),
        '{"inputs": "eA=="}'.encode("utf-16"),
        b"inputs",
        b"",
    ],
)
def test_a_body_that_is_called_json_and_is_something_else_is_refused_with_what_it_has_to_be(body):
    with pytest.raises(MalformedRequest, match="The body must be JSON such as"):
        read(body, content_type="application/json")
