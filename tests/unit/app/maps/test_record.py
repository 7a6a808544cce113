"""app/maps/record.py: what is kept of an image and of its maps, and that nothing else is believed."""

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
from app.images.messages import pack_answer
from app.images.preprocess import Box
from app.maps.record import _CHECKSUM, DamagedRecord, Maps, RecordFormat
from app.settings import DEMO_BUNDLE
from tests.support.engines import engine_of
from tests.support.records import FORMAT, make_kept, make_maps, make_prepared

JPEG = b"\xff\xd8\xff not really"
IMAGE = FORMAT.pack_image(make_kept(image=make_prepared(thumbnail=JPEG)))
MAPS = FORMAT.pack_maps(make_maps())
KINDS = {"image": (IMAGE, FORMAT.unpack_image), "maps": (MAPS, FORMAT.unpack_maps)}
EACH_KIND = pytest.mark.parametrize(("packed", "unpack"), KINDS.values(), ids=KINDS)
CLASSES = 8 * FORMAT.explained  # bytes, before the image
NUMBERS = st.fixed_dictionaries({
    name: nps.arrays(np.float32, shape) for name, shape in FORMAT.shapes.items() if name != "classes"
})  # fmt: skip


def contents(maps: Maps) -> dict[str, Any]:
    """All of them, comparable: arrays as bytes, so that NaNs are equal."""
    arrays = {field.name: getattr(maps, field.name) for field in fields(Maps)}
    return {name: (each.dtype, each.shape, each.tobytes()) for name, each in arrays.items() if each is not None}


def test_an_image_and_its_maps_take_no_less_than_is_said():
    """The rest are the checksums, the classes of the answer, and the facts of the image in JSON."""
    assert FORMAT.least_bytes < len(IMAGE) + len(MAPS) < FORMAT.least_bytes + 200


@settings(max_examples=30)
@given(
    classes=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    left=st.floats(0, 1.9),
    pixels=nps.arrays(np.uint8, (2, 2, 3)),
    thumbnail=st.binary(max_size=99),
)
def test_an_image_comes_back_as_it_was(classes, left, pixels, thumbnail):
    image = make_prepared(box=Box(left, 0, 2, 2), pixels=pixels, thumbnail=thumbnail and JPEG + thumbnail)
    unpacked = FORMAT.unpack_image(FORMAT.pack_image(make_kept(image=image, classes=classes)))
    assert unpacked.classes == classes
    assert unpacked.image.pixels.tobytes() == pixels.tobytes()
    assert replace(unpacked.image, pixels=None) == replace(image, pixels=None)


@settings(max_examples=30)
@given(numbers=NUMBERS)
def test_maps_come_back_as_they_were(numbers):
    maps = make_maps(**numbers)
    unpacked = FORMAT.unpack_maps(FORMAT.pack_maps(maps))
    assert contents(unpacked) == contents(maps)
    assert all(getattr(unpacked, name).flags.aligned for name in FORMAT.shapes)


def test_what_the_models_graphs_return_is_kept(headless_bundle):
    for folder in (DEMO_BUNDLE, headless_bundle):
        bundle = load_bundle(folder)
        pixels = np.zeros((*bundle.manifest.image.size, 3), np.uint8)
        outputs = {name: rows[0] for name, rows in engine_of(folder).run("explain", [pixels]).items()}
        maps, form = Maps.of(outputs), RecordFormat.of(bundle)
        assert contents(form.unpack_maps(form.pack_maps(maps))) == contents(maps)
        assert maps.logits.shape == (len(bundle.manifest.labels),)
        kept = make_kept(image=make_prepared(pixels=pixels), classes=tuple(maps.classes.tolist()))
        assert form.unpack_image(form.pack_image(kept)).classes == kept.classes


@EACH_KIND
def test_a_changed_byte_is_refused(packed, unpack):
    for at in range(len(packed)):
        changed = bytearray(packed)
        changed[at] ^= 0xFF
        with pytest.raises(DamagedRecord):
            unpack(bytes(changed))


def with_checksum(packed: bytes) -> bytes:
    """As somebody writes it who knows how."""
    return _CHECKSUM.pack(zlib.crc32(packed, zlib.crc32(FORMAT.name.encode()))) + packed


def of_image(answer: Any) -> bytes:
    return with_checksum(IMAGE[_CHECKSUM.size :][:CLASSES] + b"".join(pack_answer(answer)))


def of_maps(**changes: Any) -> bytes:
    return FORMAT.pack_maps(make_maps(**changes))


ANOTHER = replace(FORMAT, name="6:another")
POISON = {
    "image": {
        "nothing": b"",
        "an image of another model": ANOTHER.pack_image(make_kept()),
        "maps": MAPS,
        "no image": with_checksum(IMAGE[_CHECKSUM.size :][:CLASSES]),
        "half of the classes": with_checksum(IMAGE[_CHECKSUM.size :][: CLASSES // 2]),
        "an unknown class": FORMAT.pack_image(make_kept(classes=(0, 3))),
        "a negative class": FORMAT.pack_image(make_kept(classes=(0, -1))),
        "a class too few": FORMAT.pack_image(make_kept(classes=(0,))),
        "other pixels": of_image(make_prepared(pixels=np.zeros((4, 4, 3), np.uint8))),
        "a size that is not a number": of_image(make_prepared(size=(float("nan"), 2))),
        "no size": of_image(make_prepared(size=(0, 0), box=Box(0, 0, 0, 0))),
        "a box that is not a number": of_image(make_prepared(box=Box(float("nan"), 0, 2, 2))),
        "a box outside": of_image(make_prepared(box=Box(0, 0, 2, 1e300))),
        "a thumbnail that is not a JPEG": of_image(make_prepared(thumbnail=b"text")),
        "an error": of_image(UnusableImage("Not yours.")),
    },
    "maps": {
        "nothing": b"",
        "maps of another model": ANOTHER.pack_maps(make_maps()),
        "an image": IMAGE,
        "half of the maps": with_checksum(MAPS[_CHECKSUM.size :][: len(MAPS) // 2]),
        "more than maps have": with_checksum(MAPS[_CHECKSUM.size :] + bytes(4)),
        "maps of another shape": of_maps(attention=np.zeros((2, 1, 5), np.float32)),
        "maps of another type": of_maps(attention=np.zeros((1, 1, 5))),
        "an unknown class": of_maps(classes=np.array([0, 3])),
        "a negative class": of_maps(classes=np.array([0, -1])),
    },
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in POISON for name in POISON[kind]])
def test_what_is_no_record_of_this_model_is_refused(kind, name):
    with pytest.raises(DamagedRecord):
        KINDS[kind][1](POISON[kind][name])


@EACH_KIND
@given(data=st.data())
def test_other_bytes_and_the_beginning_of_a_record_are_refused(packed, unpack, data):
    junk, length = data.draw(st.binary(max_size=2 * len(packed))), data.draw(st.integers(0, len(packed) - 1))
    for refused in (junk, packed[:length], with_checksum(packed[_CHECKSUM.size :][:length])[:-1]):
        with pytest.raises(DamagedRecord):
            unpack(refused)
