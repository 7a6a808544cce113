"""app/api/body/json_body.py: a body in JSON falls into a small rest and slices, and can be put together again."""

import json
import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.body import json_body
from app.api.body.json_body import LARGE_BYTES, MAX_REST_BYTES, JsonBody

LARGE = 16  # in the tests that draw bodies
NUMBERS = st.lists(st.integers(0, 255), max_size=LARGE)
LETTERS = st.text("AZaz09+/=\n", max_size=2 * LARGE)
SMALL = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
LEAVES = SMALL | LETTERS | NUMBERS | st.lists(NUMBERS, max_size=2)
KEYS = st.text("ab", max_size=9)  # longer ones are no longer keys
MARK = re.compile(rb'{"[0-9a-f]{16}":\d+}')
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))


def values(body: JsonBody, found: object) -> list[bytes]:
    """The large values of parsed JSON, in order."""
    if isinstance(found, dict):
        if (string := body.text(found)) is not None:
            return [b'"%b"' % bytes(string)]
        if (numbers := body.numbers(found)) is not None:
            return [bytes(numbers)]
        found = [*found.values()]
    return [value for inner in found for value in values(body, inner)] if isinstance(found, list) else []


def whole(body: JsonBody) -> bytes:
    """The text that has been taken apart, without brackets: the rest may have more than stood around the numbers."""
    large = iter(values(body, json.loads(body.rest)))
    return bare(MARK.sub(lambda found: next(large), body.rest))


def bare(text: bytes) -> bytes:
    return text.translate(None, b"[]")


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_nothing_of_a_body_is_lost_and_its_rest_is_json(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_body, "LARGE_BYTES", LARGE)
        body = JsonBody(text)
    assert whole(body) == bare(text)


@pytest.mark.parametrize("text", [b'{"a": "' + b"A" * LARGE_BYTES + b'"}', b'{"a": [' + b"1," * LARGE_BYTES + b"1]}"])
def test_a_large_value_is_set_aside_once(text):
    body = JsonBody(text)
    assert len(MARK.findall(body.rest)) == 1
    assert len(body.rest) < 50
    assert whole(body) == bare(text)
    mark = json.loads(JsonBody(text).rest)["a"]  # as a client could send it: it is not one of ours
    assert (body.text(mark), body.numbers(mark)) == (None, None)


@pytest.mark.parametrize("string", [r"a\"", r"\"", r"\\", r"\\\"" + "b" * LARGE_BYTES, r"\"" * 500, "b" * 999 + r"\\"])
def test_a_quote_in_a_string_does_not_end_it(string):
    text = f'{{"a": "{string}", "b": 1}}'.encode()
    body = JsonBody(text)
    assert list(json.loads(body.rest)) == ["a", "b"]
    assert whole(body) == bare(text)


@pytest.mark.parametrize("text", [b'"', b'{"a', rb'"\"', rb'{"a": "\\\"}', b'"' + b"a" * LARGE_BYTES])
def test_a_string_without_an_end_is_refused(text):
    with pytest.raises(ValueError, match="without an end"):
        JsonBody(text)


@pytest.mark.parametrize("piece", [b"[]", b"{},", b"true,", b'"",', b'"a":"b",', b'{"a":', rb'"\"', rb"\"", b" "])
def test_the_rest_is_bounded_whatever_it_is(piece):
    text = b'{"inputs":["' + piece * (2**20 // len(piece)) + b'"]}' if b"\\" in piece else piece * 2**20
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"more than 16,384 bytes|without an end"):
            JsonBody(text)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(text)
    finally:
        tracemalloc.stop()


def test_the_rest_may_have_as_many_bytes_as_are_allowed():
    text = b'"%b"' % (rb"\"" * (MAX_REST_BYTES // 2 - 1))
    assert JsonBody(text).rest == text
    with pytest.raises(ValueError, match="more than"):
        JsonBody(b" " + text)
