"""app/images/json_body.py: a document comes back whole, its large values beside it, and nothing hostile is built."""

import base64
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import MalformedRequest
from app.images import json_body
from app.images.json_body import LARGE_BYTES, bytes_in_numbers, image_in_base64, read_json, unpack_document
from app.images.messages import MAX_FACTS_BYTES, GarbledAnswer
from app.images.upload import Upload

SMALL = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
LETTERS = st.text("AZaz09-_+/=\n", max_size=20)
NUMBERS = st.lists(st.integers(-1, 256), max_size=20)
LEAVES = SMALL | st.text(max_size=9) | LETTERS | NUMBERS | st.lists(NUMBERS, max_size=2)
KEYS = st.text(max_size=3)
DOCUMENTS = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
EVERY_BYTE = bytes(range(256)) * 3


def read(text: bytes) -> Any:
    return unpack_document(bytearray(read_json(text)))


def refused(text: bytes) -> str:
    with pytest.raises(MalformedRequest) as refusal:
        read(text)
    return refusal.value.detail


def same(found: Any, sent: Any) -> bool:
    if isinstance(found, Upload):
        return found.read(0, len(found)) == image_in_base64(sent)
    if isinstance(found, np.ndarray):
        return found.tolist() == sent
    if isinstance(found, dict):
        return found.keys() == sent.keys() and all(same(found[key], sent[key]) for key in found)
    if isinstance(found, list):
        return len(found) == len(sent) and all(map(same, found, sent))
    return bool(found == sent)


@given(DOCUMENTS, st.sampled_from([None, 1]), st.booleans())
def test_a_document_comes_back_whole_or_its_large_text_is_no_base64(document, indent, ascii_only):
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_body, "LARGE_BYTES", 8)
        try:
            found = read(text)
        except MalformedRequest as refusal:
            assert refusal.detail.startswith("An image in JSON must be base64")  # noqa: PT017 - or none is raised
            return
    assert same(found, document)


def test_large_values_are_set_aside_in_their_form():
    pixels = np.arange(2 * 4 * 64 * 3, dtype=np.uint8).reshape(2, 4, 64, 3)
    found = read(json.dumps({"a": [{"data": pixels.tolist()}], "b": pixels.ravel().tolist(), "c": [1, 2]}).encode())
    assert (found["a"][0]["data"] == pixels).all()
    assert (found["b"].shape, found["c"]) == ((pixels.size,), [1, 2])
    (image,) = read(b'["data:image/png;base64,%s"]' % base64.b64encode(EVERY_BYTE))
    assert image.read(0, 1000) == EVERY_BYTE


@pytest.mark.parametrize("numbers", [[256], [-1], [True], [1.0], ["1"], [None], [[1], [2, 3]], [[1], 2], [], [[]]])
def test_other_lists_are_no_bytes(numbers):
    assert bytes_in_numbers([*numbers]) is None
    if numbers:
        assert bytes_in_numbers([1] * LARGE_BYTES + numbers) is None


def test_numbers_in_lists_in_lists_are_looked_at_once(monkeypatch):
    looked_at: list[Any] = []
    monkeypatch.setattr(json_body, "bytes_in_numbers", looked_at.append)
    text = b"%s1.5%s" % (b"[" * 9, b"]" * 9)
    read(b'[{"a": %s, "b": [{"c": %s}]}, 1]' % (text, text))
    nested = json.loads(text)
    assert looked_at == [[{"a": nested, "b": [{"c": nested}]}, 1], nested, [{"c": nested}], nested]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[NaN]", "not JSON"),
        (rb'{"a": {"\ud800": 1}}', "not JSON"),
        (rb'["\udfff"]', "not JSON"),
        (b"[" + b"1" * 5000 + b"]", "not JSON"),
        ('{"inputs": "eA=="}'.encode("utf-16"), "not JSON"),
        (b"[" * 9000, "not JSON"),
        (b"[" * 100 + b"]" * 100, "more than 16 lists and objects"),
        (b'{"a": 1, "a": 2}', "a member twice"),
        (b'["%s"]' % (b"." * LARGE_BYTES), "must be base64"),
        (b'["https://%s"]' % (b"a" * LARGE_BYTES), "does not fetch addresses"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(text, said):
    assert said in refused(text)


@pytest.mark.parametrize(
    "piece", [b"[]", b"{}", b"true", b'""', b'{"a":[]}', rb'"\""', b"0.5", b"[1,2.5]", b"[  [null]  ]"]
)
def test_what_is_left_beside_large_values_is_bounded(piece):
    assert "more than 16,384 bytes" in refused(b"[" + b",".join([piece] * MAX_FACTS_BYTES) + b"]")


@given(st.binary(max_size=200), st.sampled_from(["", "\n", "\t", "\r\n"]), st.integers(1, 80), st.booleans())
def test_any_image_in_lines_of_any_length(image, between, length, padded):
    text = base64.b64encode(image).decode()
    text = text if padded else text.replace("+", "-").replace("/", "_").rstrip("=")
    lines = between.join(text[start : start + length] for start in range(0, len(text), length))
    for prefix in ("", "data:image/png;base64,", "DATA:Image/PNG;charset=utf-8;Base64,"):
        assert image_in_base64(f" {prefix}{lines}\n") == image


@pytest.mark.parametrize(
    "text", ["*", "A", "eA eA e", "eA==eA==", "A=", "====", "eAü=", "\ud800", "A" * 33, "AA==" + "A" * 16, "eA=" * 16]
)
def test_invalid_base64_is_refused(text):
    with pytest.raises(MalformedRequest, match="must be base64"):
        image_in_base64(text)


@pytest.mark.parametrize(
    "facts",
    [
        '{"error": "overloaded", "detail": "a"}',
        '[[""], [[[0], [9], 9]]]',
        '[[""], [[[1], [], 9]]]',
        '[[""], [[[], [], 9]]]',
        '[[""], [[["a"], [], 9]]]',
        "[[], []]",
        "[" * 9000,
        "7",
        " " * (MAX_FACTS_BYTES + 1),
    ],
)
def test_no_strange_answer_of_a_worker_gets_through(facts):
    with pytest.raises(GarbledAnswer):
        unpack_document(bytearray(struct.pack("!I", len(facts)) + facts.encode()))
