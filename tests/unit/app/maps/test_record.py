"""app/maps/record.py: what is kept of a forward pass, and that nothing else is believed."""

import zlib
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from app.bundle import load_bundle
from app.errors import UnusableImage
from app.images.decode import LargeImage
from app.images.messages import pack_answer
from app.images.preprocess import Box
from app.maps.record import _CHECKSUM, DamagedRecord, Maps, Record, RecordFormat
from app.settings import DEMO_BUNDLE
from tests.support.engines import engine_of
from tests.support.records import FORMAT, make_maps, make_prepared, make_record

JPEG = b"\xff\xd8\xff not really"
PACKED = FORMAT.pack(make_record(image=make_prepared(thumbnail=JPEG)))
ARRAYS = sum(4 * np.prod(shape) for shape in FORMAT.shapes.values()) + 4 * 2  # bytes; those of classes have eight
MAPS = st.fixed_dictionaries({
    name: nps.arrays(np.float32, shape) for name, shape in FORMAT.shapes.items() if name != "classes"
})  # fmt: skip


def contents(record: Record) -> dict[str, Any]:
    """All of it, comparable: arrays as bytes, so that NaNs are equal."""
    arrays = {field.name: getattr(record.maps, field.name) for field in fields(Maps)} | {"pixels": record.image.pixels}
    return {name: (each.dtype, each.shape, each.tobytes()) for name, each in arrays.items() if each is not None} | {
        "facts": replace(record.image, pixels=None)
    }


@settings(max_examples=30)
@given(maps=MAPS, left=st.floats(0, 1.9), pixels=nps.arrays(np.uint8, (2, 2, 3)), thumbnail=st.binary(max_size=99))
def test_a_record_comes_back_as_it_was(maps, left, pixels, thumbnail):
    image = make_prepared(box=Box(left, 0, 2, 2), pixels=pixels, thumbnail=thumbnail and JPEG + thumbnail)
    record = make_record(maps=make_maps(**maps), image=image)
    unpacked = FORMAT.unpack(FORMAT.pack(record))
    assert contents(unpacked) == contents(record)
    assert all(getattr(unpacked.maps, name).flags.aligned for name in FORMAT.shapes)


def test_what_the_models_graphs_return_is_kept(headless_bundle):
    for folder in (DEMO_BUNDLE, headless_bundle):
        bundle = load_bundle(folder)
        image = make_prepared(pixels=np.zeros((*bundle.manifest.image.size, 3), np.uint8))
        outputs = {name: rows[0] for name, rows in engine_of(folder).run("explain", [image.pixels]).items()}
        record = Record(maps=Maps.of(outputs), image=image)
        form = RecordFormat.of(bundle)
        assert contents(form.unpack(form.pack(record))) == contents(record)
        assert record.maps.logits.shape == (len(bundle.manifest.labels),)


def test_a_changed_byte_is_refused():
    for at in range(len(PACKED)):
        changed = bytearray(PACKED)
        changed[at] ^= 0xFF
        with pytest.raises(DamagedRecord):
            FORMAT.unpack(bytes(changed))


def with_checksum(packed: bytes) -> bytes:
    """As somebody writes it who knows how."""
    return _CHECKSUM.pack(zlib.crc32(packed, zlib.crc32(FORMAT.name.encode()))) + packed


def of_image(answer: Any) -> bytes:
    return with_checksum(PACKED[_CHECKSUM.size :][:ARRAYS] + pack_answer(answer))


def of_maps(**changes: Any) -> bytes:
    return FORMAT.pack(make_record(maps=make_maps(**changes)))


POISON = {
    "nothing": b"",
    "a record of another model": replace(FORMAT, name="5:another").pack(make_record()),
    "no image": with_checksum(PACKED[_CHECKSUM.size :][:ARRAYS]),
    "half of the maps": with_checksum(PACKED[_CHECKSUM.size :][: ARRAYS // 2]),
    "maps of another shape": of_maps(attention=np.zeros((2, 1, 5), np.float32)),
    "maps of another type": of_maps(attention=np.zeros((1, 1, 5))),
    "an unknown class": of_maps(classes=np.array([0, 3])),
    "a negative class": of_maps(classes=np.array([0, -1])),
    "other pixels": of_image(make_prepared(pixels=np.zeros((4, 4, 3), np.uint8))),
    "a size that is no number": of_image(make_prepared(size=(float("nan"), 2))),
    "no size": of_image(make_prepared(size=(0, 0), box=Box(0, 0, 0, 0))),
    "a box that is no number": of_image(make_prepared(box=Box(float("nan"), 0, 2, 2))),
    "a box outside": of_image(make_prepared(box=Box(0, 0, 2, 1e300))),
    "a thumbnail that is no JPEG": of_image(make_prepared(thumbnail=b"text")),
    "an error": of_image(UnusableImage("Not yours.")),
    "a large image": of_image(LargeImage(5)),
}


@pytest.mark.parametrize("name", POISON)
def test_what_is_no_record_of_this_model_is_refused(name):
    with pytest.raises(DamagedRecord):
        FORMAT.unpack(POISON[name])


@given(junk=st.binary(max_size=2 * len(PACKED)), length=st.integers(0, len(PACKED) - 1))
def test_other_bytes_and_the_beginning_of_a_record_are_refused(junk, length):
    for packed in (junk, PACKED[:length], with_checksum(PACKED[_CHECKSUM.size :][:length])[:-1]):
        with pytest.raises(DamagedRecord):
            FORMAT.unpack(packed)
