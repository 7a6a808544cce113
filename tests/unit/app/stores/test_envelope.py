"""app/stores/envelope.py: what is sealed comes back, and nothing else does."""

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from app.images.preprocess import Box
from app.inference.scoring import Prediction
from app.maps.record import Record
from app.stores.envelope import CHECKSUM, MAGIC, START, VERSION, EnvelopeError, seal, unseal
from tests.support.records import make_maps, make_record

MODEL, OTHER = "ab" * 32, "cd" * 32
SEALED = seal(make_record(thumbnail=b"\xff\xd8 not really"), model=MODEL)


def arrays(dtype, dimensions: int) -> st.SearchStrategy:
    return nps.arrays(dtype, nps.array_shapes(min_dims=dimensions, max_dims=dimensions, min_side=0, max_side=5))


records = st.builds(
    make_record,
    maps=st.builds(
        make_maps,
        attention=arrays(np.float32, 3),
        rollout=arrays(np.float32, 1),
        classes=arrays(np.int64, 1),
        logits=arrays(np.float32, 1),
        evidence=arrays(np.float32, 3),
        evidence_heads=arrays(np.float32, 3),
        evidence_rest=arrays(np.float32, 2),
        distance=arrays(np.float32, 2),
        lens=st.none() | arrays(np.float32, 2),
    ),
    predictions=st.lists(
        st.builds(Prediction, label=st.text(), index=st.integers(0, 10**6), score=st.floats(0, 1)), max_size=5
    ).map(tuple),
    image_size=st.tuples(st.integers(1, 10**5), st.integers(1, 10**5)),
    box=st.builds(Box, *[st.floats(-1e6, 1e6)] * 4),
    pixels=nps.arrays(np.uint8, st.tuples(st.integers(0, 9), st.integers(0, 9), st.just(3))),
    thumbnail=st.binary(max_size=100),
)


def assert_same(a: Record, b: Record) -> None:
    assert (a.predictions, a.image_size, a.box, a.thumbnail) == (b.predictions, b.image_size, b.box, b.thumbnail)
    one, two = ({**record.maps.arrays(), "pixels": record.pixels} for record in (a, b))
    assert list(one) == list(two)
    for name, array in one.items():
        assert (array.dtype, array.shape) == (two[name].dtype, two[name].shape)
        assert array.tobytes() == two[name].tobytes()  # NaNs included


@given(records)
def test_what_is_sealed_comes_back(record):
    assert_same(unseal(seal(record, model=MODEL), model=MODEL), record)


def test_arrays_are_stored_little_endian():
    record = make_record(maps=make_maps(rollout=np.arange(5, dtype=">f4")))
    assert unseal(seal(record, model=MODEL), model=MODEL).maps.rollout.tolist() == [0, 1, 2, 3, 4]


def test_an_array_that_is_no_whole_block_of_memory():
    every_other = np.arange(60, dtype=np.uint8).reshape(2, 10, 3)[:, ::2]
    assert (unseal(seal(make_record(pixels=every_other), model=MODEL), model=MODEL).pixels == every_other).all()


def refusal(envelope: bytes) -> str:
    with pytest.raises(EnvelopeError) as refused:
        unseal(envelope, model=MODEL)
    return refused.value.reason


def test_every_truncation_is_refused():
    assert {refusal(SEALED[:length]) for length in range(len(SEALED))} == {"damaged"}


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_every_changed_byte_is_refused(flip):
    for at in range(len(SEALED)):
        changed = bytearray(SEALED)
        changed[at] ^= flip
        assert refusal(bytes(changed)) in {"damaged", "other-version"}


@given(st.binary(max_size=300))
def test_anything_else_is_refused(junk):
    refusal(junk)
    refusal(MAGIC + junk)
    refusal(SEALED + junk[:1] + b"x")


def test_a_record_of_another_model_is_told_apart():
    assert refusal(seal(make_record(), model=OTHER)) == "other-model"


def forged(header: bytes, payload: bytes, version: int = VERSION) -> bytes:
    """With a checksum that is right."""
    whole = START.pack(MAGIC, version, len(header), len(payload), bytes.fromhex(MODEL)) + header + payload
    return whole + CHECKSUM.pack(zlib.crc32(whole))


def test_another_version_is_told_apart():
    assert refusal(forged(b"{}", b"", version=VERSION + 1)) == "other-version"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"shape":[5]', b'"shape":[9]'),
        (b'"shape":[5]', b'"shape":[-1]'),
        (b'"shape":[5]', b'"shape":[18446744073709551616]'),
        (b'"<f4"', b'"|O"'),
        (b'"<f4"', b'"<f2"'),
        (b'"rollout"', b'"rollup"'),
        (b'"thumbnail":13', b'"thumbnail":0'),
        (b'"thumbnail":13', b'"thumbnail":1e99'),
        (b"{", b"[" * 5000),
    ],
)
def test_a_header_that_lies_under_a_good_checksum_is_refused(old, new):
    *_, header_bytes, payload_bytes, _ = START.unpack_from(SEALED)
    header = SEALED[START.size : START.size + header_bytes]
    assert old in header
    lie = header.replace(old, new, 1)
    payload = SEALED[START.size + header_bytes :][:payload_bytes]
    assert refusal(forged(lie, payload)) == "damaged"


def test_sizes_that_do_not_exist_are_refused():
    enormous = START.pack(MAGIC, VERSION, 2**32 - 1, 2**64 - 1, bytes(32)) + struct.pack("<I", 0)
    assert refusal(enormous) == "damaged"
