import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.protocols.v2 import numbers
from app.api.protocols.v2.numbers import read_numbers

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@st.composite
def tensors(draw: st.DrawFn) -> np.ndarray:
    shape = draw(SHAPES)
    values = draw(st.lists(st.integers(0, 255), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    return np.array(values, np.uint8).reshape(shape)


@given(tensors(), st.sampled_from([None, 0, 1]), st.booleans())
def test_a_tensor_is_read_flat_and_nested(tensor, indent, flat):
    text = json.dumps((tensor.ravel() if flat else tensor).tolist(), indent=indent).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(numbers, "STEP_BYTES", 64)
        assert np.array_equal(read_numbers(text, tensor.shape), tensor)


@given(tensors(), st.data())
def test_a_changed_text_is_refused_or_read_as_json_reads_it(tensor, data):
    text = bytearray(json.dumps(tensor.tolist()).encode())
    place = data.draw(st.integers(0, len(text) - 1))
    text[place : place + data.draw(st.integers(0, 2))] = data.draw(
        st.sampled_from([b"", b",", b"[", b"]", b" ", b"0", b"7", b"-", b".", b"e", b"1 2"])
    )
    try:
        found = read_numbers(bytes(text), tensor.shape)
    except ValueError:
        return
    assert np.array_equal(found, np.array(json.loads(text)).reshape(tensor.shape))


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "[1]", "[1,2", "1,2", "[1,,2]", "[1 2]", "[1,2]]", "[[1],[2]]", "[256,0]", "[-1,0]", "[1.0,2]"),
        *("[01,2]", "[00,2]", "[1e1,2]", "[true,false]", "[1000,0]", "[0,1000]", "[1,2,3]", '["1","2"]', "[" * 9),
        "[" + "1" * 99,
    ],
)
def test_other_text_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - whatever its message
        read_numbers(text.encode(), (2,))


IMAGE, BATCH = (1, 224, 224, 3), (16, 1000, 1000, 3)
PIECES = (b"1,", b"1" * 100 + b",", b"[],", b"[", b"7 ")


@pytest.mark.parametrize(
    ("piece", "times", "shape", "most_bytes"),
    [*((piece, 2**21 // len(piece), IMAGE, 2**23) for piece in PIECES), (b"[1]", 1, BATCH, 10_000)],
)
def test_memory_is_a_small_multiple_of_the_text_and_a_claim_costs_nothing(piece, times, shape, most_bytes):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError):  # noqa: PT011 - whatever its message
            read_numbers(times * piece, shape)
        assert tracemalloc.get_traced_memory()[1] < most_bytes
    finally:
        tracemalloc.stop()
