"""app/api/image_request.py, form.py and json_images.py: the images of a request's body."""

import asyncio
import codecs
import tempfile
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.requests import Request

from app.api.form import MAX_FIELD_BYTES, MAX_FIELDS
from app.api.image_request import ImageRequest
from app.errors import BodyTooLarge, DeadlineExceeded, InvalidParameter, MalformedRequest, Overloaded, UnsupportedType
from app.http.admission import Admission
from app.images.json_body import read_json, unpack_document
from app.images.upload import Upload
from app.lifecycle import Lifecycle
from app.telemetry.request_state import RequestState

FORM = "multipart/form-data; boundary=b"
CODEC = codecs.lookup("utf-8")
LAST = {"type": "http.request", "body": b"", "more_body": False}


class Parameters(BaseModel):
    note: str = ""
    top_k: int | None = None
    attention: bool = True


async def here(upload: Upload) -> Any:
    return unpack_document(read_json(upload.read(0, len(upload))))


def received(
    *chunks: bytes,
    ends: dict[str, Any] | Exception = LAST,
    content_type: str | None,
    query: bytes = b"",
    within_s: float = 60,
    read: Callable[[Upload], Awaitable[Any]] = here,
    images: int = 0,
) -> tuple[list[Upload], Parameters]:
    """The images and the parameters of a body that arrives in these chunks, and ends so: 3 images at most. Of 2 places
    this many are taken by others.
    """
    messages = iter([*({**LAST, "body": chunk, "more_body": True} for chunk in chunks), ends])

    async def receive() -> dict[str, Any]:
        message = next(messages, None)
        if message is None:  # a client that waits
            await asyncio.sleep(60)
        if isinstance(message, Exception):
            raise message
        return message

    headers = [(b"content-type", content_type.encode("latin-1"))] if content_type is not None else []
    scope = {"type": "http", "method": "POST", "headers": headers, "query_string": query}
    scope["route"] = SimpleNamespace(path="/classify")
    classifier = SimpleNamespace(preprocessor=SimpleNamespace(read_json=read))
    RequestState.of(scope).deadline = time.monotonic() + within_s
    places = Admission(max_images=2, max_wait_s=60, image_s=0.1, lifecycle=Lifecycle())
    places.images = images
    services = SimpleNamespace(classifier=classifier, admission=places)
    request = ImageRequest(Request(scope, receive), services)
    return asyncio.run(request.read(Parameters, max_images=3))


def uploads(*chunks: bytes, **how: Any) -> list[Upload]:
    return received(*chunks, **how)[0]


def content(upload: Upload) -> bytes:
    return b"".join(upload.pieces)


def read(*chunks: bytes, **how: Any) -> list[bytes]:
    return [*map(content, uploads(*chunks, **how))]


def part(content: bytes, disposition: str) -> bytes:
    return f"--b\r\nContent-Disposition: form-data; {disposition}\r\n\r\n".encode() + content + b"\r\n"


def file(content: bytes, *, name: str = "image") -> bytes:
    return part(content, f'name="{name}"; filename="{name}.png"')


def field(content: bytes, *, name: str = "note") -> bytes:
    return part(content, f'name="{name}"')


END = b"--b--\r\n"
ONE = file(b"x") + END


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
    assert [*map(content, images)] == [b"first", b"", b"third"]
    assert parameters == Parameters(note="n" * 50, top_k=2)


@pytest.mark.parametrize("type", ["image/jpeg", "Application/Octet-Stream"])
def test_a_part_with_the_type_of_an_image_needs_no_file_name_and_another_is_a_field(type):
    image = bytes(MAX_FIELD_BYTES + 1)
    for name, expected in ('"image"', None), ('"image"; filename="star.png"', "star.png"):
        body = part(image, f"name={name}\r\nContent-Type: {type}") + END
        (upload,) = uploads(body, content_type=FORM)
        assert (upload.name, content(upload)) == (expected, image)
    note = part(b"{}", 'name="note"\r\nContent-Type: application/json')
    assert received(note + file(b"x") + END, content_type=FORM)[1] == Parameters(note="{}")


@pytest.mark.parametrize("size", [1, 999])
def test_a_form_arrives_in_pieces_and_an_image_may_contain_what_looks_like_a_boundary(size):
    image = b"\r\n--bc\r\n--\r\n\r\n--"
    body = field(b"hello") + file(b"first") + file(image) + END
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    assert read(*pieces, content_type=FORM) == [b"first", image]


def test_a_field_left_blank_is_not_given():
    """A browser sends every text field of a form, and FastAPI takes them so too. A blank name in a query is a value."""
    assert received(field(b"", name="top_k") + file(b"x") + END, content_type=FORM, query=b"note=a")[1] == Parameters(
        note="a"
    )
    with pytest.raises(InvalidParameter, match=r"^topk is not a parameter"):
        received(field(b"", name="topk") + file(b"x") + END, content_type=FORM)
    with pytest.raises(RequestValidationError):
        received(file(b"x") + END, content_type=FORM, query=b"top_k=")


def test_a_large_image_stays_in_memory(monkeypatch):
    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "rollover", lambda self: pytest.fail("written to the disk"))
    image = bytes(3 * 2**20)
    assert read(file(image) + END, content_type=FORM) == [image]


@pytest.mark.parametrize(
    ("content_type", "kind"),
    [
        ("multipart/mixed; boundary=b", UnsupportedType),
        ("multipart/related", UnsupportedType),
        ("multipart/form-data", MalformedRequest),
        ("multipart/form-data boundary=b", MalformedRequest),
        ("multipart/form-data; boundary=", MalformedRequest),
        ('multipart/form-data; !="' + "\\" * 8000, MalformedRequest),
    ],
)
def test_other_types_and_a_form_without_a_boundary_are_refused_before_the_body_is_read(content_type, kind):
    with pytest.raises(kind):
        read(ends=AssertionError("the body is read"), content_type=content_type)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (field(b"star.jpg") + END, "has 0 images"),
        (END, "has 0 images"),
        (part(b"", 'name="a"; filename=""') + END, "has 0 images"),
        (part(b"", 'name="a"; filename=""') * (MAX_FIELDS + 4) + END, "more than 3 images"),
        (file(b"x") * 4 + END, "has 4 images: send from 1 to 3"),
        (file(b"x") + field(b"") * (MAX_FIELDS + 1) + END, "16 fields besides them"),
        (file(b"x") + field(b"x " * MAX_FIELD_BYTES) + END, "65,536 bytes in a field"),
        (part(b"x", "x=y") + END, "is broken"),
        (ONE.replace(b"--b", b"--c"), "is broken"),
        (b"--b\r\n\r\nx\r\n" + END, "is broken"),  # a part without a header
        (b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c--\r\n" + END, "is broken"),
        (b"--b\r\n" + b"X: y\r\n" * 9 + ONE[5:], "is broken"),
        (part(b"x", 'name="x"' + ";" * 64) + ONE, "is broken"),
        (file(b"x"), "ends before"),
        (file(b"x") + field(b"2", name="topk") + END, "^topk is not a parameter of POST /classify: is top_k meant"),
        (file(b"x") + field(b"2", name="top_k") * 2 + END, "top_k is given 2 times"),
        (file(b"x") + field(b"false", name="attention") + END, "attention is given 2 times"),
    ],
)
def test_other_forms_are_refused(body, said):
    with pytest.raises((MalformedRequest, InvalidParameter), match=said):
        received(body, content_type=FORM, query=b"attention=false")


@pytest.mark.parametrize("charset", ["punycode", "undefined", "unicode_escape", "nonsense"])
def test_names_are_utf8_whatever_the_form_says(monkeypatch, charset):
    """No charset is looked up: Python keeps every name that it does not know."""
    monkeypatch.setattr("codecs.lookup", lambda name: pytest.fail(name) if name != "utf-8" else CODEC)
    body = part(b"x", r'name="image"; filename="\ud800-!.png"') + field(b"a " * (MAX_FIELD_BYTES // 2)) + END
    (upload,) = uploads(body, content_type=f"{FORM}; charset={charset}")
    assert upload.name == r"\ud800-!.png"


@pytest.mark.parametrize(
    ("names", "name"),
    [
        ('filename="../../etc/passwd"', "../../etc/passwd"),
        ('filename="a\\"b.jpg"', 'a"b.jpg'),
        ('filename="日本.jpg"', "日本.jpg"),
        ("filename*=UTF-8''%e6%97%a5%20%22.jpg", '日 ".jpg'),  # old urllib3
        ("filename=\"=?utf-8?B?5pelLmpwZw==?=\"; filename*=utf-8''%E6%97%A5.jpg", "日.jpg"),  # .NET
    ],
)
def test_a_file_keeps_its_name(names, name):
    (upload,) = uploads(part(b"image", f'name="f"; {names}') + END, content_type=FORM)
    assert (content(upload), upload.name) == (b"image", name)


@pytest.mark.parametrize("content_type", [None, FORM])
def test_what_is_wrong_with_the_body_is_raised(content_type):
    with pytest.raises(BodyTooLarge):
        read(file(b"x"), ends=BodyTooLarge("Too much."), content_type=content_type)


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
    ("json", "images", "parameters"),
    [
        (f'{{{X}, "top_k": 2, "attention": false}}', 1, Parameters(top_k=2, attention=False)),
        (f'{{{X}, "parameters": {{"top_k": "2"}}, "note": "a"}}', 1, Parameters(top_k=2, note="a")),
        (f'\ufeff{{{X}, "top_k": null, "options": {{"wait_for_model": true}}}}', 1, Parameters()),
        ('{"image": ["eA==", "eA=="]}', 2, Parameters()),
        ('{"images": "eA=="}', 1, Parameters()),
    ],
)
def test_members_of_json_are_images_and_parameters(json, images, parameters):
    found, others = received(json.encode(), content_type="application/json")
    assert ([*map(content, found)], others) == ([b"x"] * images, parameters)


@pytest.mark.parametrize(
    ("json", "said"),
    [
        (f'{{{X}, "topk": 2}}', r"^topk is not a parameter of POST /classify: is top_k meant"),
        (f'{{{X}, "<script>": 2}}', r"^A name in this request is not a parameter of POST /classify"),
        (f'{{{X}, "top_k": 2, "parameters": {{"top_k": 3}}}}', r"^top_k is given 2 times"),
        (f'{{{X}, "attention": true}}', r"^attention is given 2 times"),
        (f"{{{X}, {X}}}", "a member twice"),
        (f'{{{X}, "image": "eA=="}}', "images under more than one name"),
        *((f'{{{X}, "note": {value}}}', "is too long") for value in ('"' + "A" * 1000 + '"', [1] * 1000)),
        *((text, "The body must be JSON") for text in (f'{{{X}, "options": {{"top_k": 2}}}}', "[]", "7", "{}")),
        *((f'{{"inputs": {[7] * count}}}', "The body must be JSON") for count in (1, 1000)),
    ],
)
def test_other_json_is_refused(json, said):
    with pytest.raises((InvalidParameter, MalformedRequest), match=said):
        received(json.encode(), content_type="application/json", query=b"attention=false")


def test_json_waits_for_a_decoder_no_longer_than_its_deadline():
    async def never(upload: Upload) -> None:
        await asyncio.sleep(60)

    with pytest.raises(DeadlineExceeded):
        received(b"{}", content_type="application/json", within_s=0.01, read=never)


def test_json_takes_a_place_while_it_waits_for_a_decoder():
    assert len(uploads(b'{"inputs": "eA=="}', content_type="application/json", images=1)) == 1
    with pytest.raises(Overloaded):
        received(b'{"inputs": "eA=="}', content_type="application/json", images=2)
