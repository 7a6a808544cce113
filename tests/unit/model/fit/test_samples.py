"""model/fit/samples.py: what can be learned from is checked before anything is."""

import pytest
import torch

from model.fit.samples import Samples, count_classes


def samples(*classes: int) -> Samples:
    return Samples(pixels=torch.zeros(len(classes), 4, 6, 3, dtype=torch.uint8), classes=torch.tensor(classes))


@pytest.mark.parametrize(
    ("pixels", "classes", "message"),
    [
        (torch.zeros(2, 3, 4, 6, dtype=torch.uint8), torch.tensor([0, 1]), r"not torch.uint8 \(2, 3, 4, 6\)"),
        (torch.zeros(2, 4, 6, 3, dtype=torch.uint8), torch.tensor([0, 1, 0]), r"int64 \(2,\), not torch.int64 \(3,\)"),
        (torch.zeros(2, 4, 6, 3, dtype=torch.uint8), torch.tensor([0.0, 1.0]), "not torch.float32"),
    ],
)
def test_other_arrays_are_refused(pixels, classes, message):
    with pytest.raises(ValueError, match=message):
        Samples(pixels=pixels, classes=classes)


@pytest.mark.parametrize(
    ("train", "message"),
    [(samples(0, 0), "at least two classes"), (samples(0, 3), "no image to learn from of class 1, 2")],
)
def test_classes_are_counted_and_one_without_an_image_to_learn_from_is_refused(train, message):
    assert count_classes(samples(2, 0, 1, 1)) == 3
    with pytest.raises(ValueError, match=message):
        count_classes(train)
