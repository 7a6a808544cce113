"""export/agreement.py: shares and differences, of an engine whose every answer is known."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from export import agreement
from export.agreement import measure_agreement
from export.image_spec import image_spec
from export.reference import normalised
from model.demo.shapes import LABELS
from tests.support.toy import toy_checkpoint, toy_model


class Torch:
    """The model itself, with the logits of the first of every `wrong` pictures turned upside down."""

    def __init__(self, checkpoint, *, wrong):
        self.checkpoint, self.wrong, self.seen = checkpoint, wrong, 0

    @torch.no_grad()
    def run(self, graph, images):
        assert graph == "classify"
        logits = self.checkpoint.model(normalised(images, self.checkpoint)).numpy()
        places = np.arange(self.seen, self.seen + len(images))
        self.seen += len(images)
        return {"logits": np.where(places[:, None] % self.wrong == 0, -logits, logits)}


def measure(checkpoint, *, wrong, time_limit_s=math.inf):
    engine = Torch(checkpoint, wrong=wrong)
    return measure_agreement(checkpoint, image_spec(checkpoint.preprocessing), engine, time_limit_s=time_limit_s)


def test_a_picture_with_another_label_counts_as_one_of_all():
    found = measure(toy_checkpoint(), wrong=97)
    assert (found.pictures, found.top1, found.accuracy) == (96, 95 / 96, None)
    assert 0.1 < found.probability_max <= 1
    assert found.probability_mean == pytest.approx(found.probability_max / 96)


def test_the_demos_labels_are_held_against_the_truth(monkeypatch):
    monkeypatch.setattr(agreement, "HELD_OUT", 24)
    toy = toy_checkpoint()
    config = dataclasses.replace(toy.config, num_classes=len(LABELS))
    found = measure(dataclasses.replace(toy, config=config, model=toy_model(config), labels=LABELS), wrong=25)
    assert (found.pictures, found.top1) == (24, 23 / 24)
    assert found.accuracy is not None
    assert found.accuracy < 0.5  # of random weights


def test_no_batch_is_begun_after_the_time():
    assert measure(toy_checkpoint(), wrong=97, time_limit_s=-1.0).pictures == agreement.BATCH
