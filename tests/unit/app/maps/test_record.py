"""app/maps/record.py: what is kept of a forward pass."""

import numpy as np

from app.inference.cpu import OnnxEngine
from app.maps.record import Maps
from app.settings import DEMO_BUNDLE


def test_nothing_kept_holds_on_to_the_batch():
    engine = OnnxEngine(folder=DEMO_BUNDLE, image_size=(64, 64), threads=1)
    outputs = engine.run("explain", np.zeros((3, 64, 64, 3), dtype=np.uint8))
    maps = Maps.of({name: rows[1] for name, rows in outputs.items()})
    assert [name for name, array in maps.arrays().items() if array.base is not None] == []
