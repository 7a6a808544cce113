"""model/fit/batches.py: every sample once an epoch, in an order that the seed decides."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model.fit.augment import Augmentation
from model.fit.batches import Batches
from model.fit.samples import Samples


def of(count: int, *, batch: int, seed: int, among: torch.Tensor | None = None) -> Batches:
    samples = Samples(pixels=torch.zeros(count, 1, 1, 3, dtype=torch.uint8), classes=torch.zeros(count).long())
    return Batches(samples=samples, size=(1, 1), batch=batch, seed=seed, augmentation=Augmentation(), among=among)


@given(samples=st.integers(1, 300), batch=st.integers(1, 100), epoch=st.integers(0, 3), seed=st.integers(0, 2**31))
@settings(deadline=None)
def test_an_epoch_has_every_sample_once_in_batches_of_nearly_one_size(samples, batch, epoch, seed):
    batches = of(samples, batch=batch, seed=seed)
    rows = [batches.rows(epoch * batches.steps_per_epoch + place) for place in range(batches.steps_per_epoch)]
    assert torch.cat(rows).sort().values.tolist() == list(range(samples))
    sizes = {len(part) for part in rows}
    assert max(sizes) <= batch
    assert max(sizes) - min(sizes) <= 1


def test_every_epoch_and_every_seed_has_an_order_of_its_own():
    first, second = (of(50, batch=50, seed=seed) for seed in (0, 1))
    orders = [batches.rows(step).tolist() for batches in (first, second) for step in (0, 1)]
    assert len(set(map(tuple, orders))) == 4
    assert first.rows(0).tolist() == orders[0]


def test_a_batch_has_a_sample():
    with pytest.raises(ValueError, match="batch must be at least 1, not 0"):
        of(50, batch=0, seed=0)


def test_an_epoch_has_only_the_chosen_samples():
    among = torch.tensor([1, 4, 5, 8, 9])
    batches = of(10, batch=2, seed=0, among=among)
    rows = [batches.rows(step) for step in range(batches.steps_per_epoch)]
    assert [len(part) for part in rows] == [2, 2, 1]
    assert torch.equal(torch.cat(rows).sort().values, among)
