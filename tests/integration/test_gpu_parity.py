"""tests/gpu/parity.py on the CPU with the demo bundle: it finds what differs, and nothing else."""

import pytest

from app.bundle import load_bundle
from app.settings import DEMO_BUNDLE
from tests.gpu import parity

BUNDLE = load_bundle(DEMO_BUNDLE)


def test_an_engine_agrees_with_itself_and_not_with_another_image():
    cpu, images = parity.open_on_cpu(BUNDLE), parity.pictures(BUNDLE, 24)
    (row,) = parity.parity("demo", cpu, cpu, images[:4], 1e-6)
    assert row["logits"] == 0
    assert row["share of images with the same top class"] == 1
    parity.check_batches(cpu, images, 1e-3)

    class Turned:
        def run(self, graph, images):
            return cpu.run(graph, images[::-1])

    with pytest.raises(AssertionError):
        parity.parity("demo", Turned(), cpu, images[:4], 1e-3)
    with pytest.raises(AssertionError):
        parity.check_batches(Turned(), images, 1e-3)
