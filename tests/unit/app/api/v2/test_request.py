"""app/api/v2/request.py: heads and tensors, in any pieces, and every refusal."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.body.json_reader import JsonReader
from app.api.v2.head import Head
from app.api.v2.request import MAX_HEAD_BYTES, MAX_JSON_BYTES, Expected, read_request
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
    reader = JsonReader(admission=Admission(max_images=1, max_wait_s=1, image_s=0, lifecycle=Lifecycle()))
    deadline = time.monotonic() + 60
    try:
        return asyncio.run(
            read_request(pieces(body, cuts or []), reader, head_length=length, expected=EXPECTED, deadline=deadline)
        )
    finally:
        reader.close()


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
def test_pixels_in_json_are_flat_or_nested_and_unknown_parameters_are_kept(data):
    more = {"id": "a", "parameters": {"mine": [1], "priority": 1}, "strange": 1}
    found, images = read(json.dumps({**head_of(shape=[2, 2, 3, 3], data=data), **more}).encode())
    assert np.array_equal(np.stack(images), PIXELS)
    assert all(image.base is None for image in images)  # so that one kept in the store keeps no other
    assert (found.id, found.parameters, found.outputs) == ("a", {"mine": [1], "priority": 1}, None)


@pytest.mark.parametrize(("shape", "nested"), [([2], False), ([2, 1], False), ([2, 1], True)])
def test_encoded_images_in_json_are_base64(shape, nested):
    texts = [base64.b64encode(image).decode() for image in (b"an image", b"another")]
    data = [[text] for text in texts] if nested else texts
    _, uploads = read(json.dumps(head_of(shape=shape, datatype="BYTES", data=data, content_type="base64")).encode())
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
        ({"inputs": [{"name": "zzz", "shape": [1], "datatype": "UINT8"}]}, "unexpected inference input 'zzz'"),
        ({"inputs": head_of(shape=[1, 2, 3, 3])["inputs"] * 2}, "input 'images' 2 times"),
    ],
)
def test_an_invalid_head_is_refused_with_the_reason(head, reason):
    with pytest.raises(MalformedRequest) as refused:
        read(json.dumps(head).encode())
    assert reason in refused.value.detail


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"NaN", b'{"inputs": NaN}'])
def test_invalid_json_is_refused(body):
    with pytest.raises(MalformedRequest, match="not what the protocol describes"):
        read(body)


@pytest.mark.parametrize(
    "length", ["0", "-1", "1e3", "x", "", "²", str(MAX_HEAD_BYTES + 1), "9" * 30, pytest.param("9" * 5000, id="digits")]
)
def test_a_length_of_the_head_that_cannot_be_is_refused(length):
    with pytest.raises(MalformedRequest, match="inference header size should be in range"):
        read(b"{}", length=length)


def test_a_head_that_ends_too_early_and_too_much_json_are_refused():
    with pytest.raises(MalformedRequest, match=r"in range \(1, 2\), got: 3"):
        read(b"{}", length="3")
    with pytest.raises(MalformedRequest, match="send tensors in binary"):
        read(b" " * (MAX_JSON_BYTES + 1))


@pytest.mark.parametrize(
    ("parameters", "tensors", "reason"),
    [
        ({"binary_data_size": 36}, PIXELS.tobytes()[:-1], "expecting 1 additional bytes for model 'shapes'"),
        ({"binary_data_size": 36}, b"", "expecting 36 additional bytes"),
        ({"binary_data_size": 36}, PIXELS.tobytes() + b"x", "unexpected additional input data"),
        ({"binary_data_size": 35}, PIXELS.tobytes()[:-1], "its shape has 36 bytes, binary_data_size is 35"),
        ({"binary_data_size": 0}, b"", "neither data nor binary_data_size"),
        ({}, PIXELS.tobytes(), "neither data nor binary_data_size"),
        ({"binary_data_size": -1}, b"", "must be a whole number from 0"),
        ({"binary_data_size": True}, b"x", "must be a whole number"),
        ({"binary_data_size": "36"}, PIXELS.tobytes(), "must be a whole number"),
    ],
)
def test_invalid_pixels_are_refused_with_the_reason(parameters, tensors, reason):
    with pytest.raises(MalformedRequest) as refused:
        binary(head_of(shape=[2, 2, 3, 3], **parameters), tensors)
    assert reason in refused.value.detail


@pytest.mark.parametrize(
    ("tensors", "reason"),
    [
        (element(b"ab") + b"\xff\xff\xff\xff" + b"x", "expecting string of length 4294967295 but only 1 bytes"),
        (element(b"ab") + b"\x01\x00", "incomplete string data"),
        (element(b"ab"), "incomplete string data"),
        (element(b"ab") * 3, "unexpected number of string elements 3"),
    ],
)
def test_invalid_elements_are_refused_with_the_reason(tensors, reason):
    with pytest.raises(MalformedRequest) as refused:
        binary(head_of(shape=[2], datatype="BYTES", binary_data_size=len(tensors)), tensors)
    assert reason in refused.value.detail
