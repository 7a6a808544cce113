import pickle
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from app.images.preprocess import Box
from app.maps.record import Record
from app.stores.envelope import DamagedRecord, seal, unseal
from tests.support.records import make_maps, make_prepared, make_record

SEALED = seal(make_record(image=make_prepared(thumbnail=b"\xff\xd8 not really")))
DIMENSIONS = {
    "attention": 3, "rollout": 1, "logits": 1, "evidence": 3, "evidence_heads": 3, "evidence_rest": 2, "distance": 2,
}  # fmt: skip


def arrays(dtype, dimensions: int) -> st.SearchStrategy:
    return nps.arrays(dtype, nps.array_shapes(min_dims=dimensions, max_dims=dimensions, min_side=0, max_side=5))


records = st.builds(
    make_record,
    maps=st.builds(
        make_maps,
        **{name: arrays(np.float32, dimensions) for name, dimensions in DIMENSIONS.items()},
        classes=arrays(np.int64, 1),
        lens=st.none() | arrays(np.float32, 2),
    ),
    image=st.builds(
        make_prepared,
        pixels=nps.arrays(np.uint8, st.tuples(st.integers(0, 9), st.integers(0, 9), st.just(3))),
        size=st.tuples(st.integers(1, 10**5), st.integers(1, 10**5)),
        box=st.builds(Box, *[st.floats(-1e6, 1e6)] * 4),
        format=st.sampled_from(["JPEG", "pixels"]),
        thumbnail=st.binary(max_size=100),
    ),
)


def contents(record: Record) -> dict:
    """All of it, comparable: arrays as bytes, so that NaNs are equal."""
    arrays = {**record.maps.arrays(), "pixels": record.image.pixels}
    return {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()} | {
        "facts": replace(record.image, pixels=None)
    }


@settings(max_examples=30)
@given(records)
def test_a_record_comes_back_as_it_was(record):
    assert contents(unseal(seal(record))) == contents(record)


def test_a_changed_byte_is_refused_or_changes_nothing():
    """The archive has dates and attributes, which nothing reads."""
    expected, refused = contents(unseal(SEALED)), 0
    tried = range(0, len(SEALED), 5)
    for at in tried:
        changed = bytearray(SEALED)
        changed[at] ^= 0xFF
        try:
            assert contents(unseal(bytes(changed))) == expected
        except DamagedRecord:
            refused += 1
    assert refused > len(tried) / 2


@given(junk=st.binary(max_size=300), length=st.integers(0, len(SEALED) - 1))
def test_other_bytes_and_the_beginning_of_a_record_are_refused(junk, length):
    for data in (junk, SEALED[:4] + junk, SEALED[:length]):
        with pytest.raises(DamagedRecord):
            unseal(data)


def archive(**changes) -> bytes:
    with np.load(BytesIO(SEALED)) as arrays:
        out = BytesIO()
        np.savez(out, **dict(arrays) | changes)
    return out.getvalue()


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("unpickled",)


@pytest.mark.parametrize(
    "envelope",
    [
        pickle.dumps(Bomb()),
        archive(rollout=np.array([Bomb()], dtype=object)),
        archive(another=np.zeros(1)),
        archive(size=np.zeros(3)),
        archive(box=np.zeros(0)),
    ],
)
def test_another_programs_bytes_are_refused_and_not_unpickled(envelope):
    with pytest.raises(DamagedRecord):
        unseal(envelope)
