"""app/inference/batch_cost.py: which batch size pays, and which fits."""

import pytest

from app.inference.batch_cost import LatencyModel, MemoryModel

MIB = 2**20


def measured(seconds: dict[int, float], *, max_batch: int = 8) -> LatencyModel:
    model = LatencyModel(max_batch=max_batch)
    for size, value in seconds.items():
        model.add(size, 99.0)  # the first run of a size does not count
        model.add(size, value)
    return model


@pytest.mark.parametrize(
    ("max_batch", "sizes"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8]), (9, [1, 2, 4, 8, 9])]
)
def test_sizes_are_powers_of_two_and_the_largest(max_batch, sizes):
    assert LatencyModel(max_batch=max_batch).sizes == sizes


@pytest.mark.parametrize(
    ("seconds", "best"),
    [
        ({}, 1),
        ({1: 1.0}, 2),  # nothing is known of 2 yet
        ({1: 1.0, 2: 2.0}, 1),  # batches buy nothing
        ({1: 1.0, 2: 1.92}, 1),  # less than 5 %
        ({1: 1.0, 2: 1.8}, 4),  # doubling pays: the next one is tried
        ({1: 1.0, 2: 1.5, 4: 2.9, 8: 5.9}, 2),  # 8 is the best, 2 within 5 % of it
        ({1: 1.0, 2: 1.1, 4: 1.3, 8: 1.7}, 8),  # as on a GPU
        ({1: 1.0, 2: 1.5, 4: 9.0}, 2),  # larger ones can be worse
    ],
)
def test_the_best_is_the_smallest_within_five_percent(seconds, best):
    assert measured(seconds).best == best


def test_the_mean_follows_slowly_and_a_size_that_is_none_is_not_taken_in():
    model = measured({1: 1.0, 3: 0.1})
    model.add(1, 2.0)
    assert model.seconds == {1: pytest.approx(1.1)}
    for _ in range(100):
        model.add(1, 2.0)
    assert model.seconds == {1: pytest.approx(2.0, abs=1e-3)}


def test_a_run_during_a_pause_of_the_machine_counts_as_twice_the_mean():
    """Else no image would be run any more whose deadline is sooner than the next run is expected to end."""
    model = measured({1: 1.0})
    model.add(1, 36_000.0)
    assert model.expected(1) == pytest.approx(1.1)
    model.add(2, 1.5)
    model.add(2, 36_000.0)
    assert model.expected(2) == 1.5


def test_a_size_that_does_not_fit_is_not_made_again():
    model = measured({1: 1.0, 2: 1.1, 4: 1.3, 8: 1.7})
    assert model.forbid(5) == 4
    assert model.best == 4
    model.add(8, 1.0)
    model.add(8, 1.0)
    assert model.best == 4
    assert model.forbid(4) == 2
    assert model.seconds.keys() == {1, 2}
    assert model.forbid(1) == 1


@pytest.mark.parametrize(("batch", "seconds"), [(1, 1.0), (2, 1.5), (3, 2.5), (4, 2.5), (8, 5.0)])
def test_a_run_is_expected_to_take_what_the_next_size_took(batch, seconds):
    assert measured({1: 1.0, 2: 1.5, 4: 2.5}).expected(batch) == seconds
    assert measured({}).expected(batch) == 0


def remembered(allowed: float) -> MemoryModel:
    """As ViT-B/16: 700 MiB with its weights, 30 MiB an image of the lean graph, 62 of the explaining one."""
    memory = MemoryModel(allowed=allowed * MIB, before=700 * MIB)
    memory.add("classify", 1, 30 * MIB)
    memory.add("explain", 1, 62 * MIB)
    return memory


@pytest.mark.parametrize(
    ("allowed", "fitting"), [(791, []), (792, [1]), (1000, [1, 2]), (1435, [1, 2, 4]), (1436, [1, 2, 4, 8])]
)
def test_what_fits(allowed, fitting):
    assert [size for size in (1, 2, 4, 8) if remembered(allowed).fits(size)] == fitting


def test_a_larger_batch_that_took_more_for_each_image_counts_and_one_that_took_less_does_not():
    memory = remembered(1436)
    for mib, fits in ((10, True), (63, False)):
        memory.add("explain", 4, 4 * mib * MIB)
        assert memory.fits(8) == fits
