"""app/api/protocols/v2: heads and tensors in, and tensors in JSON and after it out."""

import asyncio
import base64
import json
import re
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.protocols.v2.infer import answer, named_classes, wanted
from app.api.protocols.v2.request import HEADER, MAX_HEAD_BYTES, Head, read_request
from app.errors import MalformedRequest
from app.images.json_body import read_json, unpack_document
from app.images.upload import Upload

PIXELS = np.arange(36, dtype=np.uint8).reshape(2, 2, 3, 3)


def read(body: bytes, *, length: str | None = None, cut: int = 0) -> tuple[Head, list[Any]]:
    async def received() -> Upload:
        return Upload([body[:cut], body[cut:]])

    async def document(upload: Upload) -> Any:
        return unpack_document(read_json(upload.read(0, len(upload))))

    headers = {} if length is None else {HEADER: length}
    brought = SimpleNamespace(request=SimpleNamespace(headers=headers), received=received, read_json=document)
    return asyncio.run(read_request(brought, model="shapes", size=(2, 3), max_batch=4))


def head_of(*, shape: Any, datatype: str = "UINT8", data: Any = None, **parameters: Any) -> dict[str, Any]:
    tensor = {"name": "images", "shape": shape, "datatype": datatype, "parameters": parameters}
    return {"inputs": [tensor if data is None else {**tensor, "data": data}]}


def binary(head: dict[str, Any], tensors: bytes, cut: int = 0) -> tuple[Head, list[Any]]:
    text = json.dumps(head).encode()
    return read(text + tensors, length=str(len(text)), cut=cut)


def element(content: bytes) -> bytes:
    return len(content).to_bytes(4, "little") + content


def content_of(upload: Upload) -> bytes:
    return upload.read(0, len(upload))


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.integers(0, 400))
def test_encoded_images_arrive_in_any_pieces(contents, cut):
    tensors = b"".join(map(element, contents))
    for shape in ([len(contents)], [len(contents), 1]):
        head = head_of(shape=shape, datatype="BYTES", binary_data_size=len(tensors))
        _, uploads = binary(head, tensors, cut)
        assert [*map(content_of, uploads)] == contents


@pytest.mark.parametrize("data", [PIXELS.tolist(), PIXELS.ravel().tolist()])
def test_pixels_in_json_are_flat_or_nested_and_what_clients_add_is_kept(data):
    more = {"id": "a", "parameters": {"priority": 1, "content_type": "np", "timeout": 7}}
    head = head_of(shape=[2, 2, 3, 3], data=data, content_type="np")
    found, images = read(b"\xef\xbb\xbf" + json.dumps({**head, **more}).encode())
    assert np.array_equal(np.stack(images), PIXELS)
    assert all(image.base is None for image in images)  # so that one kept in the store keeps no other
    assert (found.id, found.parameters.timeout, found.outputs) == ("a", 7, None)


@pytest.mark.parametrize("image", [b"an image", bytes(1000)])
@pytest.mark.parametrize(("shape", "nested"), [([2], False), ([2, 1], False), ([2, 1], True)])
def test_encoded_images_in_json_are_base64(shape, nested, image):
    texts = [base64.b64encode(each).decode() for each in (image, b"another")]
    data = [[text] for text in texts] if nested else texts
    _, uploads = read(json.dumps(head_of(shape=shape, datatype="BYTES", data=data, content_type="base64")).encode())
    assert [*map(content_of, uploads)] == [image, b"another"]


def test_members_that_may_be_missing_may_be_null():
    """As of MLServer's own classes. KServe's InferRequest.to_rest repeats the name of the model."""
    nothing = {"id": None, "parameters": None, "outputs": None, "model_name": "shapes", "model_version": ""}
    (tensor,) = head_of(shape=[1, 2, 3, 3], data=[0] * 18)["inputs"]
    found, images = read(json.dumps({**nothing, "inputs": [{**tensor, "parameters": None}]}).encode())
    assert (found.id, found.parameters.attention, found.outputs, len(images)) == (None, False, None, 1)


ONE = partial(head_of, shape=[1, 2, 3, 3])
TEXTS = partial(head_of, datatype="BYTES")


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ([], "JSON: Input should be"),
        (head_of(shape=[2**40, 2, 3, 3]), "has 1099511627776 images: send at most 4"),
        (head_of(shape=[1, 3, 2, 3]), "has to be [n, 2, 3, 3] for UINT8"),
        (TEXTS(shape=[2, 2]), "has to be [n] or [n, 1] for BYTES"),
        (ONE(data=[1, 2]), "has to be 18 whole numbers from 0 to 255"),
        (ONE(data=[256] * 18), "from 0 to 255"),
        (ONE(data="A" * 600), "from 0 to 255"),
        (ONE(data=[1] * 18, binary_data_size=18), "either data, or binary_data_size"),
        (ONE(), HEADER),
        (TEXTS(shape=[1], data=["*"]), "must be base64"),
        (TEXTS(shape=[2], data=["eA=="]), "2 strings of base64"),
        (TEXTS(shape=[1], data=[["eA=="]]), "1 strings of base64"),
        (ONE(shared_memory_region="a"), "shared_memory_region: Extra inputs are not permitted"),
        ({**ONE(), "parameters": {"atention": True}}, "atention: Extra inputs are not permitted: is attention meant?"),
        ({**ONE(), "parameters": {"timeout": 10**400}}, "timeout: Input should be less than"),
        ({**ONE(), "output": []}, "output: Extra inputs are not permitted: is outputs meant?"),
        ({**ONE(), "model_name": "other"}, "names another model than its path"),
        ({**ONE(), "model_version": "7"}, "model_version: Input should be '' or '1'"),
    ],
)
def test_an_invalid_head_is_refused_with_the_reason(head, reason):
    with pytest.raises(MalformedRequest, match=re.escape(reason)):
        read(json.dumps(head).encode())


@pytest.mark.parametrize("length", ["0", "-1", "1e3", "x", "", "²", str(MAX_HEAD_BYTES + 1), "9" * 5000, "3"])
def test_a_head_of_another_length_than_the_body_can_have_is_refused(length):
    with pytest.raises(MalformedRequest, match="a number from 1 to 2 for this body"):
        read(b"{}", length=length)


OF_PIXELS = partial(head_of, shape=[2, 2, 3, 3])
OF_TWO = partial(TEXTS, shape=[2])
SENT = PIXELS.tobytes()


@pytest.mark.parametrize(
    ("head", "tensors", "reason"),
    [
        (OF_PIXELS(binary_data_size=36), SENT[:-1], "as many bytes after the head"),
        (OF_PIXELS(binary_data_size=36), SENT + b"x", "as many bytes after the head"),
        (OF_PIXELS(binary_data_size=35), SENT[:-1], "has 36 bytes, and 35 are there"),
        (OF_PIXELS(), SENT, "as many bytes after the head"),
        (OF_TWO(binary_data_size=11), element(b"ab") + b"\xff\xff\xff\xffx", "say that they have 4294967305 bytes"),
        (OF_TWO(binary_data_size=8), element(b"ab") + b"\x01\x00", "and 8 are there"),
        (OF_TWO(binary_data_size=6), element(b"ab"), "and 6 are there"),
    ],
)
def test_invalid_tensors_are_refused_with_the_reason(head, tensors, reason):
    with pytest.raises(MalformedRequest, match=re.escape(reason)):
        binary(head, tensors)


SHAPES = {"scores": (3,), "logits": (3,), "embedding": (8,), "patches": (2, 3, 8), "tokens": (7, 8)}


def outputs_of(*outputs: dict[str, Any], **parameters: Any) -> list[tuple[str, bool, int]]:
    return wanted(Head.model_validate({**ONE(), "outputs": list(outputs), "parameters": parameters}), SHAPES)


def test_outputs_are_the_declared_one_or_those_that_are_named():
    assert outputs_of() == [("scores", False, 0)]
    named = {"name": "logits", "parameters": {"classification": 9, "binary_data": False}}
    assert outputs_of(named, {"name": "embedding"}, binary_data_output=True) == [
        ("logits", False, 3),
        ("embedding", True, 0),
    ]


@pytest.mark.parametrize(
    "outputs",
    [
        [{"name": "zzz"}],
        [{"name": "scores"}, {"name": "scores"}],
        [{"name": "embedding", "parameters": {"classification": 1}}],
        [{"name": "patches"}],
    ],
)
def test_other_outputs_are_refused(outputs):
    with pytest.raises(
        MalformedRequest, match=r"scores, logits, embedding, patches, tokens\.|has no classes|binary data alone"
    ):
        outputs_of(*outputs)


VALUES = np.array([[1 / 3, 1e-45, -1.0], [3.4e38, 2.0, 3.0]], np.float32)  # each is kept exactly


def answered(*outputs: tuple[str, bool, np.ndarray], **head: Any) -> tuple[Any, Any, bytes]:
    response = answer(head, outputs)
    length = int(response.headers.get(HEADER, len(response.body)))
    return response, json.loads(response.body[:length]), response.body[length:]


def test_classes_are_ranked_as_triton_writes_them_and_where_scores_are_the_same_by_their_logits():
    scores = np.array([[0.5, 1.25, -1.0], [2.0, 2.0, 3.0]], np.float32)
    found = named_classes(scores, scores, ["a", "b:c", "星"], 2)
    assert found.tolist() == [["1.250000:1:b:c", "0.500000:0:a"], ["3.000000:2:星", "2.000000:0:a"]]
    ones, logits = np.ones((1, 3), np.float32), np.array([[18.0, 30.0, 20.0]])
    assert named_classes(ones, logits, "abc", 3).tolist() == [["1.000000:1:b", "1.000000:2:c", "1.000000:0:a"]]


def test_tensors_in_json_are_flat():
    response, head, rest = answered(("scores", False, VALUES), model_name="m")
    assert (response.media_type, rest) == ("application/json", b"")
    assert head == {
        "model_name": "m",
        "outputs": [{"name": "scores", "datatype": "FP32", "shape": [2, 3], "data": VALUES.ravel().tolist()}],
    }
