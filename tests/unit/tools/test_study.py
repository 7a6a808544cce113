"""tests/study: every experiment has the runs that its table reads, and a run can be repeated."""

import pytest
import torch

from model.fit.samples import Samples
from tests.study import images, transfer
from tests.study.__main__ import EXPERIMENTS
from tests.study.backbone import SMALL, Backbone
from tests.study.experiment import per_cent
from tests.study.images import draw_shapes, few, shapes
from tests.study.run import Run
from tests.study.task import Task


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=list(EXPERIMENTS))
def test_the_table_needs_no_other_runs(experiment):
    found = dict.fromkeys(experiment.runs(), 0.75)
    rows = experiment.rows(found)
    assert all(len(row) == len(rows[0]) for row in rows)
    assert any("75.0" in str(value) for value in rows[-1].values())


def test_the_images_that_judge_a_start_do_not_choose_its_rate():
    """The rate that is better on the images to learn from is worse on those that judge."""
    low, high = transfer.RATES
    found = {run: 0.6 if (run.task.rate == high) == run.task.choosing else 0.9 for run in transfer.runs()}
    assert [(row["digits, %"][:4], row["learning rate"]) for row in transfer.rows(found)] == [("60.0", low)] * 4


def test_the_images_that_choose_are_a_fifth_of_those_to_learn_from(tmp_path):
    (train, judging), (less, choosing) = (Task(choosing=choosing).parts(tmp_path) for choosing in (False, True))
    assert torch.equal(torch.cat([less.pixels, choosing.pixels]), train.pixels)
    assert (len(train), len(judging), len(less), len(choosing)) == (1437, 360, 1149, 288)


def test_a_run_can_be_repeated(tmp_path):
    run = Run(backbone=Backbone(learned="nothing", config=SMALL), task=Task(method="few-shot", each=5))
    assert run.accuracy(tmp_path) == run.accuracy(tmp_path)
    assert 0.2 < run.accuracy(tmp_path) < 0.9  # better than chance: pixels are seen through any weights


def test_shapes_are_drawn_once(tmp_path, monkeypatch):
    monkeypatch.setattr(images, "COUNTS", {"held out": 4})
    monkeypatch.setattr(images, "CHUNK", 2)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    draw_shapes(tmp_path, [16])
    drawn = shapes(tmp_path, "held out", side=16)
    assert drawn.pixels.shape == (4, 16, 16, 3)
    assert shapes(tmp_path, "held out", count=3, side=16).pixels.shape == (3, 16, 16, 3)
    monkeypatch.setattr(images, "_draw", None)
    draw_shapes(tmp_path, [16])


def test_few_has_as_many_of_each():
    classes = torch.tensor([0, 1, 2] * 10)
    samples = Samples(pixels=classes.to(torch.uint8).view(-1, 1, 1, 1).expand(-1, 1, 1, 3), classes=classes)
    chosen = few(samples, 4, seed=0)
    assert chosen.classes.bincount().tolist() == [4, 4, 4]
    assert torch.equal(chosen.pixels[:, 0, 0, 0].long(), chosen.classes)


def test_means_and_ranges():
    assert per_cent([0.5]) == "50.0"
    assert per_cent([0.5, 0.7]) == "60.0 (50.0 to 70.0)"
