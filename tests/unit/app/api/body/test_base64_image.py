"""app/api/body/base64_image.py: base64 as JSON carries it, in as many steps as it takes."""

import base64
import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.body import base64_image
from app.api.body.base64_image import decode
from app.errors import MalformedRequest

EVERY_BYTE = bytes(range(256)) * 3


@pytest.fixture(scope="module", autouse=True)
def short_steps() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(base64_image, "STEP_BYTES", 48)  # more than a prefix
        yield


@given(st.binary(max_size=200), st.sampled_from(["", "\n", " \t", "\r\n"]), st.integers(1, 80))
def test_any_image_in_lines_of_any_length(image, between, length):
    text = base64.b64encode(image).decode()
    lines = between.join(text[start : start + length] for start in range(0, len(text), length))
    assert b"".join(decode(lines).parts()) == image
    assert b"".join(decode(memoryview(json.dumps(lines)[1:-1].encode())).parts()) == image


@pytest.mark.parametrize(
    "letters", [{"/": r"\/"}, {"+": r"\u002b", "=": r"\u003d"}, {"+": r"\u002B", "/": r"\u002F", "=": r"\u003D"}]
)
@pytest.mark.parametrize("shift", range(8))
def test_escapes_that_writers_of_json_use(letters, shift):
    image = EVERY_BYTE[shift:]
    text = "data:image/png;charset=utf-8;base64," + base64.b64encode(image).decode()
    for letter, written in letters.items():
        text = text.replace(letter, written)
    assert b"".join(decode(memoryview(text.encode())).parts()) == image


@pytest.mark.parametrize(
    "text", ["*", "A", "eA eA e", "eA==eA==", "A=", "====", "eAü=", "\ud800", "A" * 33, "AA==" + "A" * 16, "eA=" * 16]
)
def test_invalid_base64_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - whatever its message
        decode(text)


@pytest.mark.parametrize("prefix", ["", "data:image/png;base64,", "DATA:Image/PNG;Base64,"])
@pytest.mark.parametrize("cut", [0, 1, 2])
def test_base64_may_be_url_safe_and_lack_padding(prefix, cut):
    image = EVERY_BYTE[: len(EVERY_BYTE) - cut]
    text = prefix + base64.urlsafe_b64encode(image).decode().rstrip("=")
    assert b"".join(decode(text).parts()) == image


def test_an_address_is_refused_with_the_reason():
    with pytest.raises(MalformedRequest, match="does not fetch addresses"):
        decode("https://example.com/cat.jpg")
