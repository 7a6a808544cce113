"""model/fit/probe.py: what a frozen network's features teach, on real scans and against scikit-learn."""

import pytest
import torch
import torch.nn.functional as F

from model.checkpoints import load_checkpoint
from model.demo.__main__ import WEIGHTS
from model.fit.measure import measure
from model.fit.probe import ProbeRecipe, probe
from model.variants import variant
from tests.support.samples import squares
from tests.support.scans import digits
from tests.support.toy import toy_checkpoint


def test_the_demo_network_learns_digits_and_scores_are_as_large_as_they_are_often_right():
    demo, (train, held_out) = load_checkpoint(WEIGHTS), digits(64)
    fitted = probe(demo.model, demo.preprocessing, train, ProbeRecipe())
    images = (held_out.pixels.permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.5
    with torch.inference_mode():
        logits = fitted.model(images)
    right = (logits.argmax(1) == held_out.classes).double().mean().item()
    assert right >= 0.93
    assert fitted.figures["left_out_accuracy"] == pytest.approx(right, abs=0.03)
    assert logits.softmax(1).amax(1).mean().item() == pytest.approx(right, abs=0.03)
    found = measure(fitted.model, held_out, demo.preprocessing)
    assert (found.accuracy, found.loss) == pytest.approx((right, F.cross_entropy(logits, held_out.classes).item()))
    assert not fitted.model.training


def test_one_image_of_each_class_is_enough():
    toy = toy_checkpoint()
    train = squares(3, size=(24, 40))
    fitted = probe(toy.model, toy.preprocessing, train, ProbeRecipe())
    assert fitted.recipe["temperature"] == 1
    assert measure(fitted.model, train, toy.preprocessing).accuracy == 1


def test_the_class_token_alone_is_read_on_demand():
    toy = toy_checkpoint(num_classes=0)
    fitted = probe(toy.model, toy.preprocessing, squares(6, size=(24, 40)), ProbeRecipe(read="cls"))
    assert fitted.model.config == variant("mu/8", image_size=(24, 40), num_classes=3)
    assert fitted.recipe.keys() == {"method", "read", "pool", "weights", "strength", "temperature"}
