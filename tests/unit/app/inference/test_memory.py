"""app/inference/memory.py: which batch sizes fit."""

import pytest

from app.inference.memory import MemoryModel

MIB = 2**20


def measured(allowed: float) -> MemoryModel:
    """As ViT-B/16: 700 MiB with its weights, 30 MiB an image of the lean graph, 62 of the explaining one."""
    memory = MemoryModel(allowed=allowed * MIB, before=700 * MIB)
    memory.add("classify", 1, 30 * MIB)
    memory.add("explain", 1, 62 * MIB)
    return memory


def test_both_graphs_keep_what_they_have_taken():
    assert measured(0).needed(8) == (700 + 8 * 92) * MIB


@pytest.mark.parametrize(
    ("allowed", "fitting"), [(791, []), (792, [1]), (1000, [1, 2]), (1435, [1, 2, 4]), (1436, [1, 2, 4, 8])]
)
def test_what_fits(allowed, fitting):
    assert [size for size in (1, 2, 4, 8) if measured(allowed).fits(size)] == fitting


def test_a_larger_batch_that_took_more_for_each_image_counts_and_one_that_took_less_does_not():
    memory = measured(1436)
    memory.add("explain", 4, 4 * 10 * MIB)
    assert memory.fits(8)
    memory.add("explain", 4, 4 * 63 * MIB)
    assert not memory.fits(8)
