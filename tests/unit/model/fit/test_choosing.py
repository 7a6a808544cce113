"""model/fit/choosing.py: which images choose, and what is worse."""

import torch
from torch import Tensor

from model.fit.choosing import MOST, divide, worse


def test_a_fifth_of_each_class_chooses_and_at_least_one_of_two():
    classes = torch.tensor([0] * 50 + [1] * 10 + [2] * 2 + [3])
    learns, chooses = divide(classes, seed=0)
    assert torch.bincount(classes[chooses], minlength=4).tolist() == [10, 2, 1, 0]
    assert sorted([*learns.tolist(), *chooses.tolist()]) == list(range(63))
    assert torch.equal(divide(classes, seed=0)[1], chooses)
    assert not torch.equal(divide(classes, seed=1)[1], chooses)


def test_a_group_learns_or_chooses_as_a_whole():
    classes, groups = torch.tensor([0] * 60 + [1] * 5), torch.tensor([*range(30), *range(30), *[30] * 5])
    learns, chooses = divide(classes, seed=0, groups=groups)
    assert torch.bincount(classes[chooses], minlength=2).tolist() == [12, 0]
    assert not set(groups[learns].tolist()) & set(groups[chooses].tolist())


def test_no_more_choose_than_are_needed_and_none_where_each_class_has_one_image():
    assert len(divide(torch.arange(20 * MOST) % 2, seed=0)[1]) == MOST
    assert [len(rows) for rows in divide(torch.arange(3), seed=0)] == [3, 0]


def test_worse_is_more_than_a_standard_error():
    classes = torch.zeros(100, dtype=torch.int64)

    def right(*rows: int) -> Tensor:
        logits = torch.tensor([0.0, 1.0]).repeat(100, 1)
        logits[[*rows], 0] = 2.0
        return logits

    assert not worse(right(*range(50)), right(*range(51)), classes)  # one lost, and one is the standard error
    assert worse(right(*range(50)), right(*range(52)), classes)
    assert not worse(right(*range(10, 60)), right(*range(54)), classes)  # 10 lost and 6 gained
    assert worse(right(*range(10, 60)), right(*range(55)), classes)  # 10 lost and 5 gained
    assert not worse(right(*range(52)), right(*range(50)), classes)
