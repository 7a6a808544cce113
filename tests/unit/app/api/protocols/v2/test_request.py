"""app/api/protocols/v2/request.py: heads and tensors, in any pieces, and every refusal."""

import asyncio
import base64
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.body.json_reader import JsonReader
from app.api.protocols.v2.head import Head
from app.api.protocols.v2.request import MAX_HEAD_BYTES, MAX_JSON_BYTES, Expected, read_request
from app.door.admission import Admission
from app.errors import MalformedRequest
from app.images.upload import Upload
from app.lifecycle import Lifecycle

EXPECTED = Expected(name="shapes", size=(2, 3), max_batch=4)
PIXELS = np.arange(36, dtype=np.uint8).reshape(2, 2, 3, 3)


async def pieces(body: bytes, cuts: list[int]) -> AsyncIterator[bytes]:
    places = sorted(min(cut, len(body)) for cut in cuts)
    for start, end in zip([0, *places], [*places, len(body)], strict=True):
        yield body[start:end]


def read(body: bytes, *, length: str | None = None, cuts: list[int] | None = None) -> tuple[Head, list[Any]]:
    admission = Admission(max_images=1, max_wait_s=1, image_s=0, lifecycle=Lifecycle())
    how = {"head_length": length, "expected": EXPECTED, "deadline": time.monotonic() + 60}
    with closing(JsonReader(admission=admission)) as reader:
        return asyncio.run(read_request(pieces(body, cuts or []), reader, **how))


def head_of(*, shape: Any, datatype: str = "UINT8", data: Any = None, **parameters: Any) -> dict[str, Any]:
    tensor = {"name": "images", "shape": shape, "datatype": datatype, "parameters": parameters}
    return {"inputs": [tensor if data is None else {**tensor, "data": data}]}


def binary(head: dict[str, Any], tensors: bytes, cuts: list[int] | None = None) -> tuple[Head, list[Any]]:
    text = json.dumps(head).encode()
    return read(text + tensors, length=str(len(text)), cuts=cuts)


def element(content: bytes) -> bytes:
    return len(content).to_bytes(4, "little") + content


def content_of(upload: Upload) -> bytes:
    return b"".join(upload.parts())


@given(st.lists(st.integers(0, 400), max_size=6))
def test_pixels_arrive_in_any_pieces(cuts):
    _, images = binary(head_of(shape=[2, 2, 3, 3], binary_data_size=36), PIXELS.tobytes(), cuts)
    assert np.array_equal(np.stack(images), PIXELS)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.lists(st.integers(0, 400), max_size=6))
def test_encoded_images_arrive_in_any_pieces(contents, cuts):
    tensors = b"".join(map(element, contents))
    for shape in ([len(contents)], [len(contents), 1]):
        head = head_of(shape=shape, datatype="BYTES", binary_data_size=len(tensors))
        _, uploads = binary(head, tensors, cuts)
        assert list(map(content_of, uploads)) == contents


@pytest.mark.parametrize("data", [PIXELS.tolist(), PIXELS.ravel().tolist()])
def test_pixels_in_json_are_flat_or_nested_and_what_clients_add_is_kept(data):
    more = {"id": "a", "parameters": {"priority": 1, "content_type": "np"}}
    head = head_of(shape=[2, 2, 3, 3], data=data, content_type="np")
    found, images = read(b"\xef\xbb\xbf" + json.dumps({**head, **more}).encode())
    assert np.array_equal(np.stack(images), PIXELS)
    assert all(image.base is None for image in images)  # so that one kept in the store keeps no other
    assert (found.id, found.parameters, found.outputs) == ("a", more["parameters"], None)


@pytest.mark.parametrize(
    ("shape", "nested", "kind"),
    [([2], False, "base64"), ([2, 1], False, "pillow_image"), ([2, 1], True, "base64")],
)
def test_encoded_images_in_json_are_base64(shape, nested, kind):
    texts = [base64.b64encode(image).decode() for image in (b"an image", b"another")]
    data = [[text] for text in texts] if nested else texts
    _, uploads = read(json.dumps(head_of(shape=shape, datatype="BYTES", data=data, content_type=kind)).encode())
    assert list(map(content_of, uploads)) == [b"an image", b"another"]


def test_members_that_may_be_missing_may_be_null():
    """As of MLServer's own classes."""
    nothing = {"id": None, "parameters": None, "outputs": None}
    (tensor,) = head_of(shape=[1, 2, 3, 3], data=[0] * 18)["inputs"]
    found, images = read(json.dumps({**nothing, "inputs": [{**tensor, "parameters": None}]}).encode())
    assert (found.id, found.parameters, found.outputs, len(images)) == (None, {}, None, 1)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ([], "Input should be an object"),
        ({}, "inputs: Field required"),
        ({"inputs": []}, "inputs: List should have at least 1 item"),
        (head_of(shape=[1], datatype="x" * 300), "datatype: String should have at most 256 characters"),
        ({**head_of(shape=[1, 2, 3, 3]), "id": 7}, "id: Input should be a valid string"),
        (head_of(shape=[]), "shape: List should have at least 1 item"),
        (head_of(shape=[True, 2, 3, 3]), "valid integer"),
        (head_of(shape=[1.5, 2, 3, 3]), "valid integer"),
        (head_of(shape=[0, 2, 3, 3]), "unexpected shape for input 'images' for model 'shapes'. Expected [-1,2,3,3]"),
        (head_of(shape=[-1, 2, 3, 3]), "got [-1,2,3,3]"),
        (head_of(shape=[2**40, 2, 3, 3]), "batch-size must be <= 4 for 'shapes'"),
        (head_of(shape=[1, 3, 2, 3]), "got [1,3,2,3]"),
        (head_of(shape=[2, 2], datatype="BYTES"), "Expected [-1], got [2,2]"),
        (head_of(shape=[1, 2, 3, 3], datatype="FP32"), "data-type is 'FP32', but model 'shapes' expects 'UINT8'"),
        (head_of(shape=[1, 2, 3, 3], data=[1, 2]), "must be 18 whole numbers from 0 to 255"),
        (head_of(shape=[1, 2, 3, 3], data=["1"] * 18), "from 0 to 255"),  # test_numbers.py has the others
        (head_of(shape=[1, 2, 3, 3], data=[1] * 18, binary_data_size=18), "data in JSON and in binary"),
        (head_of(shape=[1, 2, 3, 3]), "the header Inference-Header-Content-Length is missing"),
        (head_of(shape=[1], datatype="BYTES", data=["x"]), "in JSON as base64"),
        (head_of(shape=[1], datatype="BYTES", data=["*"], content_type="base64"), "is not base64"),
        (head_of(shape=[2], datatype="BYTES", data=["eA=="], content_type="base64"), "must be 2 strings"),
        (head_of(shape=[1], datatype="BYTES", data=[7], content_type="base64"), "must be 1 strings"),
        (head_of(shape=[1], datatype="BYTES", data=[["eA=="]], content_type="base64"), "must be 1 strings"),
        (head_of(shape=[1, 2, 3, 3], shared_memory_region="a"), "Shared memory is not supported"),
        (
            {**head_of(shape=[1]), "parameters": {"atention": True}},
            "atention is not a parameter of a request: is attention meant?",
        ),
        (
            {**head_of(shape=[1]), "parameters": {"top_k": 2}},
            "top_k is not a parameter of a request, which takes attention,",
        ),
        ({**head_of(shape=[1]), "output": []}, "output is not a member of a request: is outputs meant?"),
        (head_of(shape=[1], binary_size=1), "binary_size is not a parameter of an input"),
        (
            {**head_of(shape=[1]), "outputs": [{"name": "a", "class_count": 1}]},
            "class_count is not a member of an output",
        ),
        (
            {**head_of(shape=[1]), "outputs": [{"name": "a", "parameters": {"clasification": 1}}]},
            "is classification meant?",
        ),
        ({"inputs": [{"name": "zzz", "shape": [1], "datatype": "UINT8"}]}, "unexpected inference input 'zzz'"),
        ({"inputs": head_of(shape=[1, 2, 3, 3])["inputs"] * 2}, "input 'images' 2 times"),
    ],
)
def test_an_invalid_head_is_refused_with_the_reason(head, reason):
    with pytest.raises(MalformedRequest, match=re.escape(reason)):
        read(json.dumps(head).encode())


INVALID_JSON = (b"", b"{", b"\xff\xd8\xff\xe0", b"[" * 100_000, b"NaN", b'{"inputs": NaN}', b'{"id": "a", "id": "b"}')
LENGTHS = ("0", "-1", "1e3", "x", "", "²", str(MAX_HEAD_BYTES + 1), "9" * 30, "9" * 5000)


@pytest.mark.parametrize(
    ("body", "length", "reason"),
    [
        *((body, None, "not what the protocol describes") for body in INVALID_JSON),
        *((b"{}", length, "inference header size should be in range") for length in LENGTHS),
        (b"{}", "3", "in range (1, 2), got: 3"),  # it ends too early
        (b" " * (MAX_JSON_BYTES + 1), None, "send tensors in binary"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_body_without_a_head_is_refused(body, length, reason):
    with pytest.raises(MalformedRequest, match=re.escape(reason)):
        read(body, length=length)


OF_PIXELS = partial(head_of, shape=[2, 2, 3, 3])
OF_TWO = partial(head_of, shape=[2], datatype="BYTES")
SENT = PIXELS.tobytes()


@pytest.mark.parametrize(
    ("head", "tensors", "reason"),
    [
        (OF_PIXELS(binary_data_size=36), SENT[:-1], "expecting 1 additional bytes for model 'shapes'"),
        (OF_PIXELS(binary_data_size=36), b"", "expecting 36 additional bytes"),
        (OF_PIXELS(binary_data_size=36), SENT + b"x", "unexpected additional input data"),
        (OF_PIXELS(binary_data_size=35), SENT[:-1], "its shape has 36 bytes, binary_data_size is 35"),
        (OF_PIXELS(binary_data_size=0), b"", "neither data nor binary_data_size"),
        (OF_PIXELS(), SENT, "neither data nor binary_data_size"),
        (OF_PIXELS(binary_data_size=-1), b"", "must be a whole number from 0"),
        (OF_PIXELS(binary_data_size=True), b"x", "must be a whole number"),
        (OF_PIXELS(binary_data_size="36"), SENT, "must be a whole number"),
        (OF_TWO(binary_data_size=11), element(b"ab") + b"\xff\xff\xff\xffx", "of length 4294967295 but only 1 bytes"),
        (OF_TWO(binary_data_size=8), element(b"ab") + b"\x01\x00", "incomplete string data"),
        (OF_TWO(binary_data_size=6), element(b"ab"), "incomplete string data"),
        (OF_TWO(binary_data_size=18), element(b"ab") * 3, "unexpected number of string elements 3"),
    ],
)
def test_invalid_tensors_are_refused_with_the_reason(head, tensors, reason):
    with pytest.raises(MalformedRequest, match=re.escape(reason)):
        binary(head, tensors)
