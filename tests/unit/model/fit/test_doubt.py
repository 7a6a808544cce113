"""model/fit/doubt.py: wrong labels are found among real scans, by heads that did not see them."""

import pytest
import torch

from model.fit.doubt import doubts
from model.fit.least_squares import least_squares

WRONG = 40


def test_of_40_wrong_labels_at_least_34_are_the_most_doubtful():
    from sklearn.datasets import load_digits  # takes seconds, which only this test waits for

    scans = load_digits()
    image, right = torch.from_numpy(scans.images), torch.from_numpy(scans.target)
    neighbours = (image[:, :, 1:] * image[:, :, :-1]).flatten(1), (image[:, 1:] * image[:, :-1]).flatten(1)
    features = torch.cat([image.flatten(1), *neighbours], dim=1)  # about as good as those of a small network
    chance = torch.Generator().manual_seed(0)
    wrong = torch.randperm(len(right), generator=chance)[:WRONG]
    classes = right.clone()
    classes[wrong] = (classes[wrong] + torch.randint(1, 10, (WRONG,), generator=chance)) % 10
    found = doubts(least_squares(features, classes, count=10).left_out, classes).argsort(descending=True)
    assert torch.isin(found[:WRONG], wrong).sum() >= 34


def test_doubt_is_what_others_are_ahead_in_units_of_what_confirmed_classes_are_ahead():
    logits = torch.tensor([[3.0, 1.0, 0.0], [5.0, 9.0, 1.0], [2.0, 8.0, 0.0]])
    assert doubts(logits, torch.tensor([0, 1, 0])).tolist() == pytest.approx([-2 / 3, -4 / 3, 2])
    assert doubts(logits, torch.tensor([1, 0, 0])).tolist() == [0, 0, 0]
