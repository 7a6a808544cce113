"""app/maps/record.py: what is kept of a forward pass."""

import gc
import tracemalloc

import pytest

from app.bundle import load_bundle
from app.images.messages import unpack_answer
from app.maps.record import Maps, Record
from app.settings import DEMO_BUNDLE
from app.stores.memory import bytes_of
from tests.support.engines import engine_of
from tests.support.specs import preparer_of


def test_a_record_takes_the_memory_that_it_is_counted_with(star):
    """One as it is made for an upload: by way of a worker's answer and of a batch."""
    bundle = load_bundle(DEMO_BUNDLE)
    manifest = bundle.manifest
    engine = engine_of(DEMO_BUNDLE)
    preparer = preparer_of(manifest.image, thumbnail_px=512)

    def kept() -> Record:
        answer = bytearray(preparer(star, even_large=True, thumbnail=True))
        prepared = unpack_answer(answer, shape=manifest.image.size)
        assert prepared.thumbnail
        outputs = {name: rows[0] for name, rows in engine.run("explain", [prepared.pixels] * 2).items()}
        maps = Maps.of(outputs)
        assert [name for name, array in maps.arrays().items() if array.base is not None] == []  # or the batch stays
        return Record(maps=maps, image=prepared)

    kept()
    gc.collect()
    tracemalloc.start()
    records = [kept() for _ in range(20)]
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] / len(records)
    tracemalloc.stop()
    assert taken == pytest.approx(bytes_of(records[0]), rel=0.02)
